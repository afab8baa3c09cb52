-- `name` is what every record is shown by, `displayName` is what a user is called: of a user they are the same text,
-- whichever of the two was written. Runs after the object User exists.
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
