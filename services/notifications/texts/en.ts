/** Notifications in English. */
import type { Language } from './language.ts';

export const en: Language = {
  tag: 'en',
  types: {
    agentApprovalRequested: ({ agent }) => ({
      title: 'A request of an agent is waiting for your decision',
      body: `The agent ${agent} wants to do something that a person must approve.`,
    }),
    bulkJobFinished: ({ object, succeeded, failed }) => ({
      title: `Job on ${object} finished`,
      body: `Rows that succeeded: ${succeeded}. Rows that failed: ${failed}.`,
    }),
    bulkJobFailed: ({ object, succeeded }) => ({
      title: `Job on ${object} failed`,
      body: `It ended before all rows were done. Rows that succeeded: ${succeeded}.`,
    }),
    calendarEventCanceled: ({ event, actor, when, uninvited }) =>
      uninvited
        ? {
            title: `No longer invited: ${event}`,
            body: `${actor === null ? 'You were left out' : `${actor} has left you out`}. When: ${when}.`,
          }
        : {
            title: `Canceled: ${event}`,
            body: `${actor === null ? 'It was canceled' : `${actor} has canceled it`}. When: ${when}.`,
          },
    calendarEventMoved: ({ event, actor, when, repeats }) => ({
      title: `Moved: ${event}`,
      body: `${actor === null ? 'It was moved' : `${actor} has moved it`}. New time: ${when}${repeats ? ', repeatedly' : ''}.`,
    }),
    calendarInvitation: ({ event, actor, when, repeats }) => ({
      title: `Invited: ${event}`,
      body: `${actor === null ? 'You are invited' : `${actor} invites you`}. When: ${when}${repeats ? ', repeatedly' : ''}.`,
    }),
    deploymentFinished: () => ({ title: 'Deployment finished', body: 'Your deployment is in effect.' }),
    deploymentFailed: () => ({ title: 'Deployment failed', body: 'Your deployment changed nothing.' }),
    recordAssigned: ({ object, actor }) => ({
      title: `${object} assigned to you`,
      body: actor === null ? 'You are the owner of the record now.' : `${actor} made you the owner of the record.`,
    }),
    recordShared: ({ object, actor }) => ({
      title: `${object} shared with you`,
      body: actor === null ? 'A record was shared with you.' : `${actor} shared a record with you.`,
    }),
    webhookSuspended: ({ webhook }) => ({
      title: `Webhook suspended: ${webhook}`,
      body: 'Nothing is sent until you activate it again. Its page says why.',
    }),
  },
  actions: {
    approval: 'Decide',
    deployment: 'View the deployment',
    event: 'View the event',
    job: 'View the job',
    subscription: 'View the subscription',
  },
  effect: ({ object, transition, actor }) => ({
    title: `${object}: ${transition}`,
    body: actor === null ? '' : `By ${actor}.`,
  }),
};
