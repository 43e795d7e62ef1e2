// Sorts tables and draws pictures. Without scripts every figure is still in a table.
(() => {
'use strict';
document.documentElement.classList.add('scripts');

// --- tables ---------------------------------------------------------------------------------------------------------

const collator = new Intl.Collator('en', {numeric: true});
const empty = (cell) => cell.dataset.v === undefined && ['', '–'].includes(cell.textContent.trim());

function compare(a, b) {
  if (a.dataset.v !== undefined && b.dataset.v !== undefined) return a.dataset.v - b.dataset.v;
  return collator.compare(a.textContent, b.textContent);
}

// Ascending, descending, then the original order; cells without a value stay last.
function sortBy(table, head, title) {
  const next = {none: 'ascending', ascending: 'descending', descending: 'none'}[head.getAttribute('aria-sort')];
  for (const other of table.tHead.rows[0].cells) other.setAttribute('aria-sort', 'none');
  head.setAttribute('aria-sort', next);
  const way = next === 'descending' ? -1 : 1;
  for (const body of table.tBodies) {
    body.append(...[...body.rows].sort((a, b) => {
      // A row with one cell is the title of the rows below it.
      if (next === 'none' || a.cells.length !== b.cells.length) return a.place - b.place;
      const x = a.cells[head.cellIndex], y = b.cells[head.cellIndex];
      return empty(x) - empty(y) || way * compare(x, y) || a.place - b.place;
    }));
  }
  document.getElementById('page-status').textContent =
      next === 'none' ? 'in the original order' : `sorted by ${title}, ${next}`;
}

for (const table of document.querySelectorAll('table')) {
  const rows = table.querySelectorAll('tbody tr');
  if (rows.length < 2 || !table.tHead) continue;
  rows.forEach((row, place) => { row.place = place; });
  for (const head of table.tHead.rows[0].cells) {
    const title = head.textContent.trim();
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = title;
    button.addEventListener('click', () => sortBy(table, head, title));
    head.replaceChildren(button);
    head.setAttribute('aria-sort', 'none');
  }
}

// --- pictures -------------------------------------------------------------------------------------------------------

const pictures = document.querySelectorAll('canvas[data-chart]');
for (const details of document.querySelectorAll('figure details')) details.open = false;
if (!pictures.length) return;

// The points of each curve from the figure's table, which has one tbody per curve.
function pointsOf(figure, lying) {
  return [...figure.querySelector('table').tBodies].map((body) => [...body.rows].flatMap((row) => {
    const [x, y] = row.querySelectorAll('td');
    if (x?.dataset.v === undefined || y.dataset.v === undefined) return [];
    const range = row.querySelector('[data-w]');
    const point = {x: +x.dataset.v, y: +y.dataset.v, row};
    if (lying) [point.x, point.y] = [point.y, point.x];
    if (range) point.range = [+range.dataset.v, +range.dataset.w];
    return [point];
  }));
}

// The cells of a row of a figure's table: [column title, text].
function textsOf(row) {
  const heads = row.closest('table').tHead.rows[0].cells;
  return [...row.querySelectorAll('td')].map((cell) => [heads[cell.cellIndex].textContent.trim(), cell.textContent.trim()])
      .filter(([, text]) => text !== '' && text !== '–');
}

// Intervals as bars with caps, or with an arrow at an end that lies beyond the scale.
const ranges = {
  id: 'ranges',
  afterDatasetsDraw(chart, _, {ink}) {
    const {ctx, chartArea: area} = chart;
    const lying = chart.options.indexAxis === 'y';
    const axis = lying ? chart.scales.x : chart.scales.y;
    ctx.save();
    ctx.beginPath();
    ctx.rect(area.left, area.top, area.width, area.height);
    ctx.clip();
    chart.data.datasets.forEach((set, s) => {
      if (!chart.isDatasetVisible(s)) return;
      ctx.strokeStyle = set.bars ? ink : set.borderColor;
      ctx.lineWidth = 1.25;
      chart.getDatasetMeta(s).data.forEach((element, i) => {
        const range = set.data[i].range;
        if (!range) return;
        const line = (x1, y1, x2, y2) => { ctx.moveTo(...(lying ? [y1, x1] : [x1, y1])); ctx.lineTo(...(lying ? [y2, x2] : [x2, y2])); };
        const at = lying ? element.y : element.x;
        const ends = range.map((value) => axis.getPixelForValue(Math.min(Math.max(value, axis.min), axis.max)));
        ctx.beginPath();
        line(at, ends[0], at, ends[1]);
        ends.forEach((end, k) => {
          const cut = range[k] < axis.min || range[k] > axis.max ? 6 * Math.sign(ends[1 - k] - end) : 0;
          line(at - 4, end + cut, at, end);
          line(at + 4, end + cut, at, end);
        });
        ctx.stroke();
      });
    });
    ctx.restore();
  },
};

// The axis as laid out by the report; names are shortened in narrow pictures.
function axisOf(spec, colours, isNames) {
  const places = spec.ticks.map(([at]) => at);
  return {
    type: spec.log ? 'logarithmic' : 'linear', min: spec.low, max: spec.high,
    title: {display: spec.title !== '', text: spec.title, color: colours.soft},
    border: {display: false},
    grid: {color: colours.rule, display: !isNames, drawBorder: false, tickColor: colours.rule},
    ticks: {
      color: colours.soft, autoSkip: !isNames, maxRotation: 0, autoSkipPadding: 12,
      callback(value) {
        const found = places.indexOf(value);
        const label = found < 0 ? '' : spec.ticks[found][1];
        const max = this.chart.width < 560 ? 20 : 48;
        return isNames && label.length > max ? label.slice(0, max - 1) + '…' : label;
      },
    },
    afterBuildTicks(axis) { axis.ticks = places.map((value) => ({value})); },
  };
}

const shapes = ['circle', 'rect', 'triangle', 'rectRot', 'star'];
const dashes = [[6, 4], [2, 3], [10, 4, 2, 4]];

// `index`: among the curves of the same kind (measured or reference).
function datasetOf(curve, index, points, colours) {
  const colour = curve.reference ? colours.grey : colours.series[index % colours.series.length];
  const bars = curve.mark === 'bars';
  const line = curve.mark === 'line' || curve.mark === 'both';
  const marked = curve.mark === 'points' || curve.mark === 'both';
  return {
    type: bars ? 'bar' : 'line', bars, label: curve.name, data: points, order: curve.reference ? 1 : 0,
    borderColor: colour, backgroundColor: colour, showLine: line, borderWidth: bars ? 0 : curve.reference ? 2 : 1.75,
    borderDash: curve.reference ? dashes[index % dashes.length] : [], pointStyle: bars ? 'rect' : marked || !line ? shapes[index % shapes.length] : 'line',
    pointRadius: marked || points.length === 1 ? (points.length > 150 ? 2 : 4) : 0, pointHoverRadius: 6, pointHitRadius: 8,
    barPercentage: 0.9, categoryPercentage: 0.85, maxBarThickness: 34, tension: 0, spanGaps: true,
  };
}

function draw(canvas) {
  const spec = JSON.parse(canvas.dataset.chart);
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue('--' + name).trim();
  const colours = {
    ink: value('ink'), soft: value('soft'), rule: value('rule'), paper: value('paper'), grey: value('grey'),
    series: ['blue', 'amber', 'green', 'red', 'grey'].map(value),
  };
  const lying = spec.lying;
  const points = pointsOf(canvas.closest('figure'), lying);
  if (lying) canvas.parentElement.style.height = `${90 + 26 * spec.x.ticks.length * Math.max(1, spec.curves.filter((c) => c.mark === 'bars').length * 0.6)}px`;
  const across = axisOf(spec.x, colours, spec.x.names), up = axisOf(spec.y, colours, false);
  if (lying) across.reverse = true;
  canvas.chart = new Chart(canvas, {
    type: spec.curves.every((curve) => curve.mark === 'bars') ? 'bar' : 'line',
    data: {datasets: spec.curves.map((curve, i) => datasetOf(
        curve, spec.curves.slice(0, i).filter((other) => other.reference === curve.reference).length, points[i], colours))},
    plugins: [ranges],
    options: {
      animation: false, responsive: true, maintainAspectRatio: false, parsing: false, normalized: false,
      indexAxis: lying ? 'y' : 'x', events: ['mousemove', 'mouseout', 'click', 'touchstart', 'touchmove'],
      interaction: {mode: 'nearest', intersect: false, axis: 'xy'},
      font: {family: getComputedStyle(document.body).fontFamily},
      scales: lying ? {x: up, y: across} : {x: across, y: up},
      plugins: {
        ranges: {ink: colours.ink},
        legend: {
          display: spec.curves.length > 1, align: 'start',
          labels: {
            color: colours.ink, usePointStyle: true, boxHeight: 7, padding: 14, sort: (a, b) => a.datasetIndex - b.datasetIndex,
          },
        },
        tooltip: {
          backgroundColor: colours.ink, titleColor: colours.paper, bodyColor: colours.paper, displayColors: false,
          callbacks: {
            title: ([{dataset, raw}]) => [dataset.label, ...textsOf(raw.row).filter(([title]) => title === 'point').map(([, text]) => text)],
            label: ({raw}) => textsOf(raw.row).filter(([title]) => title !== 'point').map((pair) => pair.join(': ')),
          },
        },
      },
    },
  });
}

// Keyboard: arrows walk along the points of all curves, Escape leaves them.
function walk(canvas) {
  let at = -1;
  canvas.tabIndex = 0;
  canvas.addEventListener('keydown', (event) => {
    const chart = canvas.chart;
    const places = chart.data.datasets.flatMap((set, s) => chart.isDatasetVisible(s) ? set.data.map((_, index) => ({datasetIndex: s, index})) : []);
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (step && places.length) at = (at + step + (at < 0 && step < 0 ? 1 : 0) + places.length) % places.length;
    else if (event.key === 'Escape') at = -1;
    else return;
    event.preventDefault();
    const active = at < 0 ? [] : [places[at]];
    const element = at < 0 ? {x: 0, y: 0} : chart.getDatasetMeta(active[0].datasetIndex).data[active[0].index];
    chart.setActiveElements(active);
    chart.tooltip.setActiveElements(active, {x: element.x, y: element.y});
    chart.update();
    if (active.length) document.getElementById('page-status').textContent = chart.tooltip.title.concat(chart.tooltip.body.flatMap((b) => b.lines)).join(', ');
  });
}

function redraw() {
  for (const canvas of pictures) {
    canvas.chart?.destroy();
    draw(canvas);
  }
}

Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
redraw();
for (const canvas of pictures) walk(canvas);
for (const query of ['(prefers-color-scheme: dark)', 'print']) matchMedia(query).addEventListener('change', redraw);
})();
