"""Where and how one episode is played.  Nothing here knows a run folder."""
