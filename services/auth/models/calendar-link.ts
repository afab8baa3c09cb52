import { type CreationOptional, DataTypes, type InferAttributes, type InferCreationAttributes, Model } from 'sequelize';
import { sequelize, type Timestamp } from '../../../mixins/models/sequelize.ts';

/** The link by which programs read the calendar of a user. Only the hash of its token is stored. */
export class CalendarLinkModel extends Model<
  InferAttributes<CalendarLinkModel>,
  InferCreationAttributes<CalendarLinkModel>
> {
  declare tenantId: string;
  declare userId: string;
  declare tokenHash: Buffer;
  declare createdAt: CreationOptional<Timestamp>;
}

CalendarLinkModel.init(
  {
    tenantId: { type: DataTypes.UUID, primaryKey: true },
    userId: { type: DataTypes.UUID, primaryKey: true },
    tokenHash: DataTypes.BLOB,
    createdAt: DataTypes.TEXT,
  },
  { sequelize, schema: 'auth', tableName: 'calendar_links' },
);
