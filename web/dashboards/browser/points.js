/**
 * The points of a chart by keyboard: arrow keys go from one to the next, show what pointing at it shows, and tell it to
 * a screen reader. Enter opens the records behind.
 */
import { announce } from '../../shared/elements.js';

/** @import { Chart } from 'chart.js' */

/**
 * Index that a key moves to among so many points; -1: none.
 * @type {Record<string, (at: number, last: number) => number>}
 */
const STEPS = {
  ArrowRight: (at, last) => Math.min(at + 1, last),
  ArrowDown: (at, last) => Math.min(at + 1, last),
  ArrowLeft: (at) => Math.max(at - 1, 0),
  ArrowUp: (at) => Math.max(at - 1, 0),
  Home: () => 0,
  End: (_, last) => last,
};

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Chart} chart
 * @param {(index: number, datasetIndex: number | null) => void} open the records of a point, or of all at one place
 */
export function readByKeyboard(canvas, chart, open) {
  let at = -1;
  const leave = () => {
    if (at < 0) return;
    at = -1;
    activate(chart, []);
  };
  canvas.addEventListener('blur', leave);
  canvas.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === 'Escape') leave();
    const points = pointsOf(chart);
    const [current, ...others] = points[at] ?? [];
    if (event.key === 'Enter' && current) open(current.index, others.length === 0 ? current.datasetIndex : null);
    const step = Object.hasOwn(STEPS, event.key) ? STEPS[event.key] : undefined;
    if (!step || points.length === 0) return;
    event.preventDefault();
    at = step(at, points.length - 1);
    activate(chart, points[at] ?? []);
    announce(said(chart));
  });
}

/**
 * Points at each place of the chart: of all series, without those that the legend has switched off.
 * @param {Chart} chart
 * @returns {{ datasetIndex: number, index: number }[][]}
 */
function pointsOf(chart) {
  const { labels = [], datasets } = chart.data;
  return labels
    .map((/** @type {unknown} */ _, /** @type {number} */ index) =>
      datasets.flatMap(({ data }, datasetIndex) => {
        const isDrawn = chart.isDatasetVisible(datasetIndex) && chart.getDataVisibility(index);
        return isDrawn && data[index] !== null ? [{ datasetIndex, index }] : [];
      }),
    )
    .filter((/** @type {unknown[]} */ points) => points.length > 0);
}

/**
 * @param {Chart} chart
 * @param {{ datasetIndex: number, index: number }[]} points
 */
function activate(chart, points) {
  chart.setActiveElements(points);
  chart.tooltip?.setActiveElements(points, { x: 0, y: 0 });
  chart.update();
}

/**
 * The words of the tooltip that is shown.
 * @param {Chart} chart
 */
function said({ tooltip }) {
  const [title = '', ...lines] = [...(tooltip?.title ?? []), ...(tooltip?.body ?? []).flatMap(({ lines }) => lines)]
    .map((line) => line.trim())
    .filter(Boolean);
  return lines.length > 0 ? `${title}. ${lines.join('; ')}.` : `${title}.`;
}
