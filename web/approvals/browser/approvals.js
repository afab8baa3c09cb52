/** The list of open approvals, and one request of an agent with the decision about it. */
import { CallFailed, call } from '../../shared/api.js';
import { announce, button, element, fill, foreign, problem } from '../../shared/elements.js';
import { failureBox } from '../../shared/failure.js';
import { moment } from '../../shared/format.js';
import { identify } from '../../shared/navigation.js';
import { leaveForSignIn } from '../../shared/sign-in.js';
import { showViews } from '../../shared/views.js';
import { nameOf, showProposal, titleOf } from './proposal.js';

/** @import { Approval, ApprovalSummary, Run } from './api-types.d.ts' */
/** @import { Place, View } from '../../shared/types.d.ts' */

const PAGE_SIZE = 50;

export const begin = showViews({
  open: async (_main, go) => {
    const where = await identify();
    const [, , id] = location.pathname.split('/');
    return id ? showApproval(id, where, go) : showList(where);
  },
  problem: 'The approvals cannot be shown',
  missing: () => [
    problem('There is no such approval', 'It does not exist, or it is not for you to see.'),
    element('p', {}, element('a', { href: '/approvals' }, 'All approvals')),
  ],
});

/**
 * @param {Place} where
 * @returns {Promise<View>}
 */
async function showList(where) {
  const list = element('ul', { class: 'approvals' });
  const said = element('div', {});
  const readMore = () => read().catch((error) => fill(said, failureBox('No more can be shown', error)));
  const more = button('Show more', () => void readMore());
  const empty = element('p', { hidden: true }, 'Nothing waits for your approval.');
  /** @type {string | null} */
  let cursor = null;
  const read = async () => {
    fill(said);
    const query = new URLSearchParams({ status: 'PENDING', take: String(PAGE_SIZE), ...(cursor ? { cursor } : {}) });
    /** @type {{ records: ApprovalSummary[], nextCursor: string | null }} */
    const { records, nextCursor } = await call(`/agent/approvals?${query}`);
    list.append(...(await Promise.all(records.map((one) => entry(one, where)))));
    cursor = nextCursor;
    more.hidden = nextCursor === null;
    empty.hidden = list.children.length > 0 || nextCursor !== null;
  };
  await read();
  const heading = element('h1', { tabindex: '-1' }, 'What waits for approval');
  return { title: 'Approvals', parts: [heading, list, empty, said, more] };
}

/**
 * @param {ApprovalSummary} approval
 * @param {Place} where
 */
async function entry(approval, where) {
  const { approvalId, risk, requestedAt, expiresAt } = approval;
  return element(
    'li',
    { class: 'card' },
    element('h2', {}, element('a', { href: `/approvals/${approvalId}` }, foreign(await titleOf(approval)))),
    element(
      'p',
      {},
      riskOf(risk, `Risk: ${risk}`),
      ` · asked ${moment(requestedAt, where)} · can be decided until ${moment(expiresAt, where)}`,
    ),
  );
}

/**
 * @param {ApprovalSummary['risk']} risk
 * @param {string} text
 */
const riskOf = (risk, text) => element('span', { class: `risk-${risk}` }, text);

/**
 * @param {string} id
 * @param {Place} where
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
async function showApproval(id, where, go) {
  /** @type {Approval} */
  const approval = await call(`/agent/approvals/${id}`);
  const [run, proposal] = await Promise.all([runOf(approval), showProposal(approval, where)]);
  const [user, title] = await Promise.all([run ? nameOf('User', run.userId) : null, titleOf(approval)]);
  const parts = [
    element('p', {}, element('a', { href: '/approvals' }, 'All approvals')),
    element('h1', { tabindex: '-1' }, foreign(title)),
    facts([
      ['Agent', run ? foreign(`${run.agentKey} (${run.clientId})`) : null],
      ['In the name of', user === null ? null : foreign(user)],
      ['Goal of its run', run ? element('span', { class: 'goal', dir: 'auto' }, run.goal) : null],
      ['Risk', riskOf(approval.risk, RISKS[approval.risk])],
      ['Asked', moment(approval.requestedAt, where)],
      [approval.status === 'PENDING' ? 'Can be decided until' : 'Valid until', moment(approval.expiresAt, where)],
      ['State', STATES.get(approval.status) ?? approval.status],
      ['People who must approve', approval.requiredApprovals > 1 ? String(approval.requiredApprovals) : null],
    ]),
    element('h2', {}, 'What it would do'),
    ...proposal.parts,
    ...(await Promise.all(approval.decisions.map((one) => decisionPart(one, where)))),
    ...(approval.status === 'PENDING' ? [decisionForm(approval, proposal.whole, go)] : []),
  ];
  return { title, parts };
}

const RISKS = { low: 'Low', medium: 'Medium', high: 'High' };

const STATES = new Map([
  ['PENDING', 'Waits for a decision'],
  ['APPROVED', 'Approved: the agent can carry it out'],
  ['REJECTED', 'Rejected'],
  ['EXPIRED', 'Expired'],
  ['CANCELED', 'Canceled'],
  ['CONSUMED', 'Approved and carried out'],
]);

/**
 * @param {Approval} approval
 * @returns {Promise<Run | null>}
 */
const runOf = ({ runId }) =>
  call(`/agent/runs/${runId}`).catch((error) => {
    if (error instanceof CallFailed) return null;
    throw error;
  });

/** @param {[string, Node | string | null][]} entries null: left out */
const facts = (entries) =>
  element(
    'dl',
    { class: 'facts' },
    ...entries.flatMap(([term, value]) => (value === null ? [] : [element('dt', {}, term), element('dd', {}, value)])),
  );

/**
 * @param {Approval['decisions'][number]} decision
 * @param {Place} where
 */
async function decisionPart({ userId, decision, comment, decidedAt }, where) {
  const words = decision === 'approve' ? 'approved' : 'rejected';
  return element(
    'p',
    { class: 'done' },
    foreign(await nameOf('User', userId)),
    ` ${words} on ${moment(decidedAt, where)}${comment ? ': ' : '.'}`,
    ...(comment ? [foreign(comment)] : []),
  );
}

/**
 * @param {Approval} approval
 * @param {boolean} whole
 * @param {(address: string) => void} go
 */
function decisionForm({ approvalId, fingerprint }, whole, go) {
  const said = element('div', {});
  const comment = /** @type {HTMLTextAreaElement} */ (
    element('textarea', { id: 'comment', maxlength: '2000', 'aria-describedby': 'comment-hint' })
  );
  const decide = async (/** @type {'approve' | 'reject'} */ decision) => {
    const written = comment.value.trim();
    if (decision === 'reject' && written === '') {
      fill(said, problem('A comment is needed', 'Write why you reject: the agent is shown it.'));
      comment.focus();
      return;
    }
    setBusy(true);
    try {
      await call(`/agent/approvals/${approvalId}/decision`, {
        body: { decision, fingerprint, ...(written ? { comment: written } : {}) },
        key: crypto.randomUUID(),
      });
      announce(decision === 'approve' ? 'Approved' : 'Rejected');
      go(location.pathname);
    } catch (error) {
      setBusy(false);
      fill(said, error instanceof CallFailed ? refusal(error) : failureBox('It was not stored', error));
    }
  };
  const approve = element(
    'button',
    { type: 'button', disabled: !whole, click: () => void decide('approve') },
    'Approve',
  );
  const reject = element('button', { type: 'button', class: 'quiet', click: () => void decide('reject') }, 'Reject');
  const setBusy = (/** @type {boolean} */ busy) => {
    approve.toggleAttribute('disabled', busy || !whole);
    reject.toggleAttribute('disabled', busy);
  };
  return element(
    'section',
    { 'aria-labelledby': 'decision' },
    element('h2', { id: 'decision' }, 'Your decision'),
    ...(whole
      ? []
      : [
          problem(
            'It cannot be approved here',
            'You cannot be shown the whole request: part of it was not stored, or you have no access to it.',
          ),
        ]),
    element('label', { for: 'comment' }, 'Comment'),
    comment,
    element('p', { class: 'hint', id: 'comment-hint' }, 'Required to reject. The agent is shown it.'),
    said,
    element('div', { class: 'actions' }, approve, reject),
  );
}

/** In words for people, by the code of the error. */
const REFUSALS = new Map([
  ['APPROVAL_ALREADY_DECIDED', ['It is decided already', 'Load the page anew to see the decision.']],
  ['APPROVAL_EXPIRED', ['It has expired', 'The agent has to ask again.']],
  [
    'APPROVAL_STALE',
    ['Something has changed since', 'What was shown is not what would happen now. The agent has to ask again.'],
  ],
  ['APPROVAL_FINGERPRINT_MISMATCH', ['The request is not the one shown', 'Load the page anew and read it again.']],
  [
    'APPROVAL_ACTOR_NOT_HUMAN',
    ['Only a person can decide', 'Sign in as a person, with another client than the one that asked.'],
  ],
  ['APPROVAL_SELF_NOT_ALLOWED', ['Somebody else must decide', 'The agent acts in your name.']],
]);

/** @param {CallFailed} error */
function refusal(error) {
  if (error.code === 'AUTHENTICATION_INSUFFICIENT') {
    const { acrValues, maxAgeSeconds } = error.details;
    const strength = {
      ...(Array.isArray(acrValues) ? { acr_values: acrValues.join(' ') } : {}),
      ...(typeof maxAgeSeconds === 'number' ? { max_age: String(maxAgeSeconds) } : {}),
    };
    return problem(
      'A stronger or newer sign-in is needed',
      'Sign in once more; you come back to this page and decide then.',
      button('Sign in', () => void leaveForSignIn(undefined, strength)),
    );
  }
  const [title, words] = REFUSALS.get(error.code) ?? ['It was not stored', error.message];
  const reasons = error.errors.map(({ message }) => element('p', {}, message));
  return problem(String(title), `${words} (${error.code})`, ...reasons);
}
