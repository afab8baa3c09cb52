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
    webhookSuspended: () => ({
      title: 'Webhook ausgesetzt',
      body: 'Es wird nichts gesendet, bis Sie ihn wieder aktivieren. Warum, steht auf seiner Seite.',
    }),
  },
  actions: {
    approval: 'Entscheiden',
    deployment: 'Deployment ansehen',
    job: 'Auftrag ansehen',
    subscription: 'Abonnement ansehen',
  },
  effect: ({ object, transition, actor }) => ({
    title: `${object}: ${transition}`,
    body: actor === null ? '' : `Von ${actor}.`,
  }),
};
