-- Periodic work is a chain of jobs in pg-boss now (mixins/jobs), so nothing claims its turn in a table of our own.
-- Processes of the previous version may still run: their claim fails, which they log, and they go on serving requests;
-- the rounds are done by the processes of this version.
DROP TABLE data.sweeps;
