-- `name` is the display text of every record, `displayName` that of a user: in a user they are equal, whichever is written. Runs
-- after the object User exists.
CREATE FUNCTION _user_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW."displayName" IS NOT DISTINCT FROM OLD."displayName" THEN
    NEW."displayName" := NEW.name;
  ELSE
    NEW."displayName" := coalesce(NEW."displayName", NEW.name);
    NEW.name := NEW."displayName";
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER _user_name BEFORE INSERT OR UPDATE OF name, "displayName" ON "User"
  FOR EACH ROW EXECUTE FUNCTION _user_name();
