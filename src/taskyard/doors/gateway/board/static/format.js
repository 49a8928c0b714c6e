// Numbers, ages and moments as people read them.

let skew = 0; // milliseconds by which the yard's clock is ahead of the browser's

/** Note the yard's own time, which an answer has just brought. */
export function setNow(text) {
  if (text) skew = Date.parse(text) - Date.now();
}

export const now = () => Date.now() + skew;

export const number = (value) => (value === null || value === undefined ? "" : value.toLocaleString("en-US"));

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

/** A duration in at most two units: 45 s, 3 min, 2 h 10 min, 5 d. */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return `${whole} s`;
  if (whole < 5400) return `${Math.round(whole / 60)} min`;
  if (whole < 172800) {
    const all = Math.round(whole / 60);
    const [hours, minutes] = [Math.floor(all / 60), all % 60];
    return minutes && hours < 10 ? `${hours} h ${minutes} min` : `${hours} h`;
  }
  return `${Math.round(whole / 86400)} d`;
}

export const age = (text) => (text ? duration((now() - Date.parse(text)) / 1000) : "");

export const clock = (text) => (text ? new Date(text).toLocaleTimeString("en-GB") : "");

export const moment = (text) => (text ? new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" }) : "");

export const percent = (share) => (share === null || share === undefined ? "" : `${Math.floor(share * 100)} %`);

/** JSON for people; a text is shown as it is. */
export const json = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
