-- What a change did to the fields of a record stands in the audit trail, under the record and its version, and there
-- alone: an event tells which change it was. Nothing else about the function is new.
CREATE OR REPLACE FUNCTION _rollup_trail(object_name text, keeps_history boolean, tells_events boolean, changed jsonb, actor jsonb)
  RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  item jsonb;
  stamp text;
  -- Behind the records that the request itself changes, and the parents told before.
  position integer := coalesce(nullif(current_setting('app.rollup_events', true), '')::integer,
    coalesce((actor ->> 'transactionSize')::integer, 1));
BEGIN
  IF (actor ->> 'checkOnly')::boolean THEN
    PERFORM set_config('app.rollup_trials', (coalesce(nullif(current_setting('app.rollup_trials', true), '')::jsonb, '[]')
      || (SELECT jsonb_agg(jsonb_build_object('object', object_name, 'id', x -> 'id',
            'fields', (SELECT jsonb_agg(k) FROM jsonb_object_keys(x -> 'changes') k))) FROM jsonb_array_elements(changed) x))::text, true);
    RETURN;
  END IF;
  FOR item IN SELECT * FROM jsonb_array_elements(changed) LOOP
    -- A UUID of version 7 without its variant: its first half is the time.
    stamp := lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0');
    INSERT INTO _audit (audit_id, user_id, client_id, agent_run_id, channel, operation_id, outcome, request_id,
        idempotency_key, object, record_id, kind, record_version, changes, ip)
      VALUES ((stamp || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid,
        (actor ->> 'userId')::uuid, actor ->> 'clientId', (actor ->> 'agentRunId')::uuid, actor ->> 'channel',
        actor ->> 'operationId', 'committed', actor ->> 'requestId', actor ->> 'key', object_name,
        (item ->> 'id')::uuid, 'update', (item ->> 'version')::integer, item -> 'changes', actor ->> 'ip');
    IF keeps_history THEN
      INSERT INTO _history (change_id, object, record_id, record_version, operation, user_id, client_id, agent_run_id,
          request_id, changes)
        VALUES ((stamp || '7' || substr(md5(random()::text), 1, 3) || '8' || substr(md5(random()::text), 1, 15))::uuid,
          object_name, (item ->> 'id')::uuid, (item ->> 'version')::integer, 'update', (actor ->> 'userId')::uuid,
          actor ->> 'clientId', (actor ->> 'agentRunId')::uuid, actor ->> 'requestId', item -> 'changes');
    END IF;
    IF tells_events THEN
      INSERT INTO _outbox (type, object, record_id, record_version, user_id, client_id, agent_run_id, request_id, data)
        VALUES ('data.record.updated', object_name, (item ->> 'id')::uuid, (item ->> 'version')::integer,
          (actor ->> 'userId')::uuid, actor ->> 'clientId', (actor ->> 'agentRunId')::uuid, actor ->> 'requestId',
          jsonb_build_object('transactionId', actor ->> 'transactionId',
            'transactionIndex', position, 'transactionSize', (actor ->> 'transactionSize')::integer));
      position := position + 1;
    END IF;
  END LOOP;
  PERFORM set_config('app.rollup_events', position::text, true);
END $$;
