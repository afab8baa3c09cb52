/** Draws charts with Chart.js, in the colours of the page, without motion for those who ask for none. */

import { number } from '../../shared/format.js';
import { readByKeyboard } from './points.js';
import { chartData, description, SERIES_MAX, slices, unitOf } from './result.js';
import { say } from './words.js';

/** @import { ChartConfiguration, ChartDataset } from 'chart.js' */
/** @import { Column, Place } from '../../shared/types.d.ts' */
/** @import { Links } from './tables.js' */
/** @import { Series, Widget, WidgetResult } from './types.d.ts' */

/** Longer names of categories stand better at the side. */
const LONG_LABEL = 14;
const LABEL_MAX = 24;
const LABEL_MAX_NARROW = 16;
/** Pixels below which names of categories leave no room for their bars. */
const NARROW = 420;
const POINTS = /** @type {const} */ ([
  'circle',
  'rect',
  'triangle',
  'rectRot',
  'star',
  'crossRot',
  'rectRounded',
  'dash',
]);
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 4], [1, 3], [6, 2, 2, 2]];

const still = matchMedia('(prefers-reduced-motion: reduce)');

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** @param {number} index */
const seriesColour = (index) => colour(`--series-${(index % SERIES_MAX) + 1}`);
/** @param {string} label @param {number} [max] */
const shortened = (label, max = LABEL_MAX) => (label.length > max ? `${label.slice(0, max - 1)}…` : label);

/**
 * Data of a chart before drawing.
 * @param {Widget} widget
 * @param {WidgetResult} result
 * @param {Place} place
 * @param {Links} links
 */
export function chartOf(widget, result, place, links) {
  const data = chartData(result, widget, place);
  const kind = say('kinds')[widget.type === 'funnel' && !narrows(data) ? 'bar' : widget.type] ?? '';
  const { at } = slices(data, widget);
  /**
   * Address of the records of a point.
   * @param {number} index
   * @param {number | null} datasetIndex null: of all series at this place
   */
  const addressOf = (index, datasetIndex) => {
    const category = widget.type === 'pie' ? (at[index] ?? -1) : index;
    const { groups = [] } = datasetIndex === null ? {} : (data.series[datasetIndex] ?? {});
    return category < 0 ? null : links([...data.groups.slice(category, category + 1), ...groups]);
  };
  /** @param {number} value @param {Column} column */
  const written = (value, column) => number(value, column, place);
  const opens = data.categories.length > 0 && addressOf(0, 0) !== null ? ` ${say('enterOpens')}` : '';
  return { data, addressOf, left: data.left, label: `${widget.title}. ${description(kind, data, written)}${opens}` };
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Widget} widget
 * @param {ReturnType<typeof chartOf>} chart
 * @param {Place} place
 * @returns {{ destroy(): void }}
 */
export function draw(canvas, widget, { data, addressOf }, place) {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.color = colour('--soft');
  Chart.defaults.borderColor = colour('--hair');
  const drawn = made(canvas, widget, data, place);
  /** @type {(index: number, datasetIndex: number | null) => void} */
  const open = (index, datasetIndex) => {
    const address = addressOf(index, datasetIndex);
    if (address !== null) location.assign(address);
  };
  /** @param {MouseEvent} event */
  const pointed = (event) => {
    const [one] = drawn.getElementsAtEventForMode(event, 'nearest', { intersect: true }, false);
    return one;
  };
  canvas.addEventListener('click', (event) => {
    const one = pointed(event);
    if (one) open(one.index, one.datasetIndex);
  });
  canvas.addEventListener('mousemove', (event) => {
    const one = pointed(event);
    canvas.classList.toggle('opens', one !== undefined && addressOf(one.index, one.datasetIndex) !== null);
  });
  readByKeyboard(canvas, drawn, open);
  return drawn;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Widget} widget
 * @param {ReturnType<typeof chartData>} data
 * @param {Place} place
 */
function made(canvas, widget, data, place) {
  if (widget.type === 'pie') return new Chart(canvas, pie(widget, data, place));
  if (widget.type === 'funnel') return new Chart(canvas, funnel(data, place));
  return new Chart(canvas, cartesian(widget, data, place));
}

/** Common to all kinds. */
const common = () => ({
  responsive: true,
  maintainAspectRatio: false,
  ...(still.matches ? { animation: /** @type {const} */ (false) } : { animation: { duration: 300 } }),
});

/** @param {boolean} shown */
const legend = (shown) => ({
  display: shown,
  position: /** @type {const} */ ('bottom'),
  labels: { usePointStyle: true, boxHeight: 8, color: colour('--ink'), padding: 12 },
});

/**
 * @param {Widget} widget
 * @param {ReturnType<typeof chartData>} data
 * @param {Place} place
 * @returns {ChartConfiguration<'pie', number[], string>}
 */
function pie(widget, data, place) {
  const { labels, values } = slices(data, widget);
  const total = values.reduce((sum, value) => sum + value, 0);
  const column = data.series[0]?.column;
  /** @param {number} value */
  const written = (value) => (column ? number(value, column, place) : String(value));
  return {
    type: 'pie',
    data: {
      labels: labels.map((label) => shortened(label)),
      datasets: [
        {
          data: values,
          backgroundColor: values.map((_, index) => seriesColour(index)),
          borderColor: colour('--card'),
          borderWidth: 2,
        },
      ],
    },
    options: {
      ...common(),
      plugins: {
        legend: { ...legend(true), position: 'right' },
        tooltip: {
          callbacks: {
            // The line names its slice itself.
            title: () => '',
            label: ({ dataIndex }) => {
              const value = values[dataIndex] ?? 0;
              const share = total > 0 ? ` (${Math.round((value / total) * 100)} %)` : '';
              return ` ${labels[dataIndex]}: ${written(value)}${share}`;
            },
          },
        },
      },
    },
  };
}

/**
 * No stage has more than the one before; otherwise bars that begin at one side are easier to compare.
 * @param {import('./types.d.ts').ChartData} data
 */
const narrows = ({ series: [only] }) =>
  (only?.values ?? []).every((value, at, values) => at === 0 || (value ?? 0) <= (values[at - 1] ?? 0));

/**
 * Bars about one middle where they narrow, else from one side: the wider, the more.
 * @param {ReturnType<typeof chartData>} data
 * @param {Place} place
 * @returns {ChartConfiguration<'bar', [number, number][], string>}
 */
function funnel(data, place) {
  const { categories, series } = data;
  const [only] = series;
  const centred = narrows(data);
  const values = (only?.values ?? []).map((value) => value ?? 0);
  const most = Math.max(1, ...values);
  const names = categories.map((category, index) => {
    const value = only ? number(values[index] ?? 0, only.column, place, { short: true }) : '';
    return [shortened(category), value];
  });
  return {
    type: 'bar',
    data: {
      labels: /** @type {any[]} */ (names),
      datasets: [
        {
          label: only?.label ?? '',
          data: values.map((value) => (centred ? [-value / 2, value / 2] : [0, value])),
          backgroundColor: seriesColour(0),
          borderSkipped: false,
          borderRadius: 4,
          barPercentage: 0.98,
          categoryPercentage: 0.94,
        },
      ],
    },
    options: {
      ...common(),
      indexAxis: 'y',
      scales: {
        x: { display: false, min: centred ? -most / 2 : 0, max: centred ? most / 2 : most },
        y: { grid: { display: false }, border: { display: false }, ticks: { color: colour('--ink') } },
      },
      plugins: {
        legend: legend(false),
        tooltip: {
          callbacks: {
            title: ([item]) => categories[item?.dataIndex ?? 0] ?? '',
            label: ({ dataIndex }) => {
              const value = values[dataIndex] ?? 0;
              const share = centred && values[0] ? ` (${say('ofFirst')(Math.round((value / values[0]) * 100))})` : '';
              return only ? ` ${number(value, only.column, place)}${share}` : '';
            },
          },
        },
      },
    },
  };
}

/**
 * @param {Widget} widget
 * @param {ReturnType<typeof chartData>} data
 * @param {Place} place
 * @returns {ChartConfiguration<'bar' | 'line', (number | null)[], string>}
 */
function cartesian(widget, { categories, series, time }, place) {
  const bars = widget.type === 'bar';
  const sideways = bars && !time && categories.some((label) => label.length > LONG_LABEL);
  const stacked = widget.options['stacked'] === true;
  const [firstUnit = '', ...otherUnits] = [...new Set(series.map(({ column }) => unitOf(column)))];
  const twoAxes = otherUnits.length > 0;
  /** @param {Series} one */
  const axisOf = ({ column }) => (twoAxes && unitOf(column) !== firstUnit ? 'second' : sideways ? 'x' : 'y');
  const dense = categories.length > 40;
  /** @type {ChartDataset<'bar' | 'line', (number | null)[]>[]} */
  const datasets = series.map((one, index) => {
    const shade = seriesColour(index);
    const axis = sideways ? { xAxisID: axisOf(one), yAxisID: 'y' } : { yAxisID: axisOf(one) };
    const shared = { label: one.label, data: one.values, ...axis, borderColor: shade };
    if (bars)
      return {
        ...shared,
        type: 'bar',
        backgroundColor: shade,
        borderRadius: 3,
        maxBarThickness: 48,
        skipNull: true,
        ...(stacked ? { stack: unitOf(one.column) } : {}),
      };
    return {
      ...shared,
      type: 'line',
      backgroundColor: widget.type === 'area' ? `${shade}40` : shade,
      fill: widget.type === 'area' && axis.yAxisID !== 'second' ? (stacked && index > 0 ? '-1' : 'origin') : false,
      borderWidth: 2,
      borderDash: DASHES[index % DASHES.length] ?? [],
      pointStyle: POINTS[index % POINTS.length] ?? 'circle',
      pointRadius: dense ? 0 : 3,
      pointHitRadius: 12,
      tension: 0.2,
    };
  });
  const measure = series.find((one) => axisOf(one) !== 'second')?.column;
  const second = series.find((one) => axisOf(one) === 'second')?.column;
  /** @param {Column | undefined} column */
  const figures = (column) => ({
    beginAtZero: true,
    stacked,
    border: { display: false },
    ticks: {
      maxTicksLimit: 6,
      callback: (/** @type {string | number} */ value) =>
        column ? number(Number(value), column, place, { short: true }) : String(value),
    },
  });
  const secondPlace = sideways
    ? { axis: /** @type {const} */ ('x'), position: /** @type {const} */ ('top') }
    : { axis: /** @type {const} */ ('y'), position: /** @type {const} */ ('right') };
  const names = {
    stacked,
    grid: { display: false },
    ticks: {
      color: colour('--ink'),
      maxRotation: 45,
      autoSkipPadding: 10,
      ...(sideways ? { autoSkip: false } : {}),
      /** @this {{ chart: { width: number } }} @param {string | number} _value @param {number} index */
      callback(_value, index) {
        return shortened(categories[index] ?? '', this.chart.width < NARROW ? LABEL_MAX_NARROW : LABEL_MAX);
      },
    },
  };
  return {
    type: bars ? 'bar' : 'line',
    data: { labels: categories, datasets },
    options: {
      ...common(),
      indexAxis: sideways ? 'y' : 'x',
      interaction: { mode: 'index', axis: sideways ? 'y' : 'x', intersect: false },
      scales: {
        x: sideways ? figures(measure) : names,
        y: sideways ? names : figures(measure),
        ...(twoAxes ? { second: { ...figures(second), ...secondPlace, grid: { drawOnChartArea: false } } } : {}),
      },
      plugins: {
        legend: legend(series.length > 1),
        tooltip: {
          callbacks: {
            title: ([item]) => categories[item?.dataIndex ?? 0] ?? '',
            label: (item) => {
              const one = series[item.datasetIndex];
              const value = one?.values[item.dataIndex];
              return one && typeof value === 'number' ? ` ${one.label}: ${number(value, one.column, place)}` : '';
            },
          },
        },
      },
    },
  };
}
