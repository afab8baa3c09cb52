-- The revision at which the draft has last changed, whoever may see it; NULL: that of the dashboard.
ALTER TABLE analytics.dashboards ADD COLUMN draft_revision integer;
