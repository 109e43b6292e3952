// Comfort only: the page says everything without it. Policies can be switched off, a pointer over a plot reads out values, light and dark
// can be swapped. Values are computed back from the drawn paths and the scales in the data attributes.
(() => {
	'use strict';
	const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
	const make = (tag, style, text) => {
		const element = document.createElement(tag);
		element.className = style;
		element.textContent = text || '';
		return element;
	};

	// Light and dark: the one rule that holds the dark colours is made to apply always or never.
	const dark = all('style').flatMap(style => Array.from(style.sheet.cssRules))
		.find(rule => rule.media && rule.media.mediaText.includes('prefers-color-scheme'));
	if (dark) {
		let isDark = matchMedia('(prefers-color-scheme: dark)').matches;
		const button = make('button', 'theme', isDark ? 'Light' : 'Dark');
		button.onclick = () => {
			isDark = !isDark;
			dark.media.mediaText = isDark ? 'screen' : 'not all';
			button.textContent = isDark ? 'Light' : 'Dark';
		};
		document.querySelector('header').append(button);
	}

	// The legend: click to switch a policy off, point at it to see it alone.
	const drawn = all('.series, .mark, .panel');
	const items = all('.legend .item');
	for (const item of items) {
		const series = item.dataset.series;
		const toggle = () => {
			const off = item.getAttribute('aria-pressed') === 'true';
			item.setAttribute('aria-pressed', String(!off));
			drawn.filter(element => element.classList.contains(series)).forEach(element => element.classList.toggle('off', off));
		};
		const dim = on => drawn.forEach(element =>
			element.classList.toggle('dim', on && !element.classList.contains('panel') && !element.closest('.panel') && !element.classList.contains(series)));
		item.setAttribute('role', 'button');
		item.setAttribute('tabindex', '0');
		item.setAttribute('aria-pressed', 'true');
		item.onclick = toggle;
		item.onkeydown = event => {
			if (event.key === 'Enter' || event.key === ' ') {
				event.preventDefault();
				toggle();
			}
		};
		item.onpointerenter = () => dim(true);
		item.onpointerleave = () => dim(false);
	}
	if (items.length)
		items[0].parentNode.append(make('span', 'tip', 'Click a policy to hide it, point at it to see it alone.'));

	// Read-outs.
	const scale = text => {
		const [kind, low, high, from, to, floor, unit] = text.split(' ');
		return {log: kind === 'log', low: +low, high: +high, from: +from, to: +to, floor: +floor, unit};
	};
	const valueAt = (axis, pixel) => {
		const share = Math.min(1, Math.max(0, (pixel - axis.from) / (axis.to - axis.from)));
		return axis.log ? axis.low * Math.pow(axis.high / axis.low, share) : axis.low + share * (axis.high - axis.low);
	};
	const duration = seconds => {
		const two = (total, per, big, small) => {
			const units = Math.round(total), rest = units % per;
			return `${Math.floor(units / per)} ${big}` + (rest ? ` ${rest} ${small}` : '');
		};
		if (seconds < 1)
			return `${Math.round(seconds * 1000)} ms`;
		if (seconds < 59.95)
			return `${+seconds.toFixed(1)} s`;
		if (seconds < 3599.5)
			return two(seconds, 60, 'min', 's');
		if (seconds < 86370)
			return two(seconds / 60, 60, 'h', 'min');
		return two(seconds / 3600, 24, 'd', 'h');
	};
	const format = (unit, value) => {
		switch (unit) {
		case 'duration': return duration(value);
		case 'share': return `${(value * 100).toFixed(1)} %`;
		case 'factor': return `${+value.toPrecision(3)}\u00d7`;
		default: return Math.round(value).toLocaleString('en');
		}
	};
	// A staircase of M, H and V becomes the corners where its height changes.
	const corners = path => {
		const found = [];
		let x = 0;
		for (const [, verb, numbers] of path.getAttribute('d').matchAll(/([MHV])([^MHVZ]*)/g)) {
			const values = numbers.trim().split(' ').map(Number);
			if (verb !== 'V')
				x = values[0];
			if (verb !== 'H')
				found.push([x, values[values.length - 1]]);
		}
		return found;
	};
	const heightAt = (points, x) => {
		let low = 0, high = points.length;
		while (high - low > 1) {
			const middle = (low + high) >> 1;
			if (points[middle][0] <= x)
				low = middle;
			else
				high = middle;
		}
		return points[low][1];
	};

	const box = make('div', 'readbox');
	box.hidden = true;
	document.body.append(box);
	for (const plot of all('svg.readout')) {
		const xAxis = scale(plot.dataset.x), yAxis = scale(plot.dataset.y), size = plot.viewBox.baseVal;
		const paths = all('path.series', plot).map(path => ({path, points: null}));
		const cursor = document.createElementNS(plot.namespaceURI, 'line');
		cursor.setAttribute('class', 'cursor');
		cursor.setAttribute('y1', yAxis.to);
		cursor.setAttribute('y2', yAxis.from);
		const leave = () => {
			box.hidden = true;
			cursor.remove();
		};
		plot.onpointerleave = leave;
		plot.onpointermove = event => {
			const place = plot.getBoundingClientRect();
			const x = (event.clientX - place.left) * size.width / place.width;
			if (x < xAxis.from || x > xAxis.to)
				return leave();
			const rows = paths.filter(({path}) => !path.classList.contains('off') && !path.closest('.off')).map(entry => {
				entry.points = entry.points || corners(entry.path);
				return {path: entry.path, value: valueAt(yAxis, heightAt(entry.points, x))};
			}).sort((a, b) => b.value - a.value);
			cursor.setAttribute('x1', x);
			cursor.setAttribute('x2', x);
			plot.append(cursor);
			box.replaceChildren(make('b', '', (xAxis.log ? 'within ' : 'at ') + format(xAxis.unit, valueAt(xAxis, x))), ...rows.map(({path, value}) => {
				const row = make('div', Array.from(path.classList).find(name => /^k\d$/.test(name)) || '');
				row.append(make('i', ''), path.dataset.name, make('span', '', format(yAxis.unit, value)));
				return row;
			}));
			box.hidden = rows.length === 0;
			const left = event.clientX + 16, top = event.clientY + 16;
			box.style.left = `${left + box.offsetWidth > innerWidth ? Math.max(0, event.clientX - box.offsetWidth - 16) : left}px`;
			box.style.top = `${top + box.offsetHeight > innerHeight ? Math.max(0, event.clientY - box.offsetHeight - 16) : top}px`;
		};
	}

	// The command can be copied where the browser allows it.
	const command = document.querySelector('.command');
	if (command && navigator.clipboard) {
		const text = command.textContent, button = make('button', '', 'Copy');
		button.onclick = () => navigator.clipboard.writeText(text).then(() => { button.textContent = 'Copied'; });
		command.append(button);
	}
})();
