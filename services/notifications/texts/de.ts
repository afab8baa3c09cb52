/** Notifications in German. */
import type { Language } from './language.ts';

export const de: Language = {
  tag: 'de',
  types: {
    agentApprovalRequested: ({ agent }) => ({
      title: 'Eine Anfrage eines Agenten wartet auf Ihre Entscheidung',
      body: `Der Agent ${agent} möchte etwas tun, das ein Mensch genehmigen muss.`,
    }),
    bulkJobFinished: ({ object, succeeded, failed }) => ({
      title: `Auftrag zu ${object} abgeschlossen`,
      body: `Erfolgreiche Zeilen: ${succeeded}. Fehlgeschlagene Zeilen: ${failed}.`,
    }),
    bulkJobFailed: ({ object, succeeded }) => ({
      title: `Auftrag zu ${object} fehlgeschlagen`,
      body: `Er endete, bevor alle Zeilen bearbeitet waren. Erfolgreiche Zeilen: ${succeeded}.`,
    }),
    calendarEventCanceled: ({ event, actor, when, uninvited }) =>
      uninvited
        ? {
            title: `Nicht mehr eingeladen: ${event}`,
            body: `${actor === null ? 'Sie sind nicht mehr eingeladen' : `${actor} hat Sie ausgeladen`}. Wann: ${when}.`,
          }
        : {
            title: `Abgesagt: ${event}`,
            body: `${actor === null ? 'Der Termin wurde abgesagt' : `${actor} hat den Termin abgesagt`}. Wann: ${when}.`,
          },
    calendarEventMoved: ({ event, actor, when, repeats }) => ({
      title: `Verschoben: ${event}`,
      body: `${actor === null ? 'Der Termin wurde verschoben' : `${actor} hat den Termin verschoben`}. Neue Zeit: ${when}${repeats ? ', wiederholt' : ''}.`,
    }),
    calendarInvitation: ({ event, actor, when, repeats }) => ({
      title: `Eingeladen: ${event}`,
      body: `${actor === null ? 'Sie sind eingeladen' : `${actor} lädt Sie ein`}. Wann: ${when}${repeats ? ', wiederholt' : ''}.`,
    }),
    deploymentFinished: () => ({ title: 'Deployment abgeschlossen', body: 'Ihr Deployment ist in Kraft.' }),
    deploymentFailed: () => ({ title: 'Deployment fehlgeschlagen', body: 'Ihr Deployment hat nichts geändert.' }),
    recordAssigned: ({ object, actor }) => ({
      title: `${object} wurde Ihnen zugewiesen`,
      body:
        actor === null ? 'Der Datensatz gehört jetzt Ihnen.' : `${actor} hat Sie zum Besitzer des Datensatzes gemacht.`,
    }),
    recordShared: ({ object, actor }) => ({
      title: `${object} wurde mit Ihnen geteilt`,
      body:
        actor === null ? 'Ein Datensatz wurde mit Ihnen geteilt.' : `${actor} hat einen Datensatz mit Ihnen geteilt.`,
    }),
    webhookSuspended: ({ webhook }) => ({
      title: `Webhook ausgesetzt: ${webhook}`,
      body: 'Es wird nichts gesendet, bis Sie ihn wieder aktivieren. Warum, steht auf seiner Seite.',
    }),
  },
  actions: {
    approval: 'Entscheiden',
    deployment: 'Deployment ansehen',
    event: 'Termin ansehen',
    job: 'Auftrag ansehen',
    subscription: 'Abonnement ansehen',
  },
  effect: ({ object, transition, actor }) => ({
    title: `${object}: ${transition}`,
    body: actor === null ? '' : `Von ${actor}.`,
  }),
};
