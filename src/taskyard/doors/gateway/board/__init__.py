"""The board: a page in the browser that shows a yard live and lets people step in; served by the gateway, needs no other host."""
