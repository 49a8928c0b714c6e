-- min_client: 1
-- The bell is rung for those who sleep. Clients of schema 2 and before hold the lock for as long as they listen, and are rung for as before.

-- Listeners hold the lock shared while they sleep, and not while they are awake: then they look anyway. In a busy yard nobody
-- sleeps, and nobody has to ring: every NOTIFY takes one lock for the whole server until its transaction is flushed.
-- The transaction has a number before it asks whether somebody sleeps: so whoever falls asleep in this moment finds it under
-- way, and looks once more when it has ended. Two who ask at once are in each other's way; a second try tells them from a sleeper.
CREATE OR REPLACE FUNCTION taskyard.ring(project int) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_current_xact_id();
    IF pg_try_advisory_lock(747159, project) OR pg_try_advisory_lock(747159, project) THEN
        PERFORM pg_advisory_unlock(747159, project);
    ELSE
        PERFORM pg_notify('taskyard_' || project, '');
    END IF;
END $$;
