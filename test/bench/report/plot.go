// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // so that plots can be saved as SVG
)

// picture is a plot that was drawn.
type picture struct{ title, file string }

// line is one line of a plot.
type line struct {
	name   string
	points plotter.XYs
}

// drawing is a plot of lines against the number of resources.
type drawing struct {
	picture
	y     string
	lines []line
}

const (
	width  = 16 * vg.Centimeter
	height = 9 * vg.Centimeter
)

// The cases that are drawn, as test/bench names them.
const (
	created  = "databases created, of so many"
	inMemory = "databases in memory"
	atRest   = "databases at rest"
)

// draw draws what was measured with several numbers of databases, into a folder.
func (r results) draw(folder string) ([]picture, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	drawings := []drawing{
		{picture{"Requests for each database that is created", "requests.svg"}, "requests", []line{
			{"writes", r.created("writes")}, {"reads", r.created("reads")}, {"events", r.created("events")},
		}},
		{picture{"CPU for each database", "cpu.svg"}, "ms", []line{
			{"created", r.created("CPU ms")}, {"changed", r.changed("CPU ms")},
		}},
		{picture{"Memory of each database", "memory.svg"}, "KB", []line{
			{"live heap", r.perDatabase("B4", inMemory, "live heap MB")}, {"Pss", r.perDatabase("B4", inMemory, "Pss MB")},
		}},
		{picture{"CPU at rest, for asking each member", "rest.svg"}, "µs a second", []line{{"of each database", r.perDatabase("B2", atRest, "CPU ms per s")}}},
	}
	var drawn []picture
	for _, drawing := range drawings {
		drawing.lines = slices.DeleteFunc(drawing.lines, func(l line) bool { return len(l.points) == 0 })
		if len(drawing.lines) == 0 {
			continue
		}
		if err := drawing.save(folder); err != nil {
			return nil, fmt.Errorf("draw %s: %w", drawing.file, err)
		}
		drawn = append(drawn, drawing.picture)
	}
	return drawn, nil
}

// created are the medians of a value of B1, against the number of databases.
func (r results) created(value string) plotter.XYs {
	var points plotter.XYs
	for _, s := range r.of("B1") {
		if figure, isMeasured := s.figure(value); isMeasured && s.what == created {
			points = append(points, plotter.XY{X: float64(s.size), Y: figure.median})
		}
	}
	return points
}

// changed are points of B5, where how many were changed is in the case's name.
func (r results) changed(value string) plotter.XYs {
	var points plotter.XYs
	for _, s := range r.of("B5") {
		if figure, isMeasured := s.figure(value); isMeasured && s.subject == "operator" {
			points = append(points, plotter.XY{X: float64(s.size), Y: figure.median})
		}
	}
	slices.SortFunc(points, func(a, b plotter.XY) int { return int(a.X - b.X) })
	return points
}

// perDatabase is by how much a value is greater than without any database, in
// thousandths for each of them.
func (r results) perDatabase(benchmark, what, value string) plotter.XYs {
	var points plotter.XYs
	without, isKnown := 0.0, false
	for _, s := range r.of(benchmark) {
		figure, isMeasured := s.figure(value)
		switch {
		case !isMeasured || s.what != what:
		case s.size == 0:
			without, isKnown = figure.median, true
		case isKnown:
			points = append(points, plotter.XY{X: float64(s.size), Y: (figure.median - without) * 1000 / float64(s.size)})
		}
	}
	return points
}

// palette are colours that are told apart on white and by most eyes.
func palette() []color.Color {
	return []color.Color{color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff}}
}

func (d drawing) save(folder string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = d.title, "databases", d.y
	p.BackgroundColor = color.White
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min = 0
	p.Legend.Top, p.Legend.XOffs = true, -vg.Centimeter
	p.Add(plotter.NewGrid())
	for at, line := range d.lines {
		drawn, points, err := plotter.NewLinePoints(line.points)
		if err != nil {
			return err
		}
		drawn.Color, points.Color = palette()[at], palette()[at]
		p.Add(drawn, points)
		p.Legend.Add(line.name, drawn, points)
	}
	p.Y.Min = 0
	p.Y.Max *= 1.25 // for the legend
	return p.Save(width, height, filepath.Join(folder, d.file))
}
