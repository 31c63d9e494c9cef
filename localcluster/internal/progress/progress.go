// SPDX-License-Identifier: Apache-2.0

// Package progress tells a person what is being done, how far it is and how long it took.
package progress

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Printer writes a line when a step begins and one when it ends. On a terminal, a last line tells how far the steps
// under way are, and is redrawn; elsewhere a step writes a line at most every quietInterval, so that a log stays short.
type Printer struct {
	mu    sync.Mutex
	out   io.Writer
	width func() int // of the terminal; nil where there is none
	steps []*Step    // those under way
}

const (
	quietInterval  = 30 * time.Second
	redrawInterval = 200 * time.Millisecond
)

// NewPrinter writes to file.
func NewPrinter(file *os.File) *Printer {
	printer := &Printer{out: file}
	if _, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS); err == nil {
		printer.width = func() int {
			size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
			if err != nil || size.Col == 0 {
				return 80
			}
			return int(size.Col)
		}
	}
	return printer
}

// Printf writes a line.
func (p *Printer) Printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write(fmt.Sprintf(format, args...) + "\n")
}

// write puts text above the last line.
func (p *Printer) write(text string) {
	if p.width != nil {
		text = "\r\x1b[K" + text + p.lastLine()
	}
	_, _ = io.WriteString(p.out, text) // a lost progress line harms nothing
}

// lastLine is cut to the terminal's width: a line that wraps can't be redrawn.
func (p *Printer) lastLine() string {
	var states []string
	for _, step := range p.steps {
		if step.state != "" {
			states = append(states, step.state)
		}
	}
	line := []rune(strings.Join(states, " | "))
	return string(line[:min(len(line), p.width()-1)])
}

// Step is one piece of work under way.
type Step struct {
	printer *Printer
	name    string
	state   string
	start   time.Time
	last    time.Time
}

// Start announces a step.
func (p *Printer) Start(name string) *Step {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	step := &Step{printer: p, name: name, start: now, last: now}
	p.steps = append(p.steps, step)
	p.write(name + " …\n")
	return step
}

// Update tells how far the step is.
func (s *Step) Update(format string, args ...any) {
	s.printer.mu.Lock()
	defer s.printer.mu.Unlock()
	now, interval := time.Now(), quietInterval
	if s.printer.width != nil {
		interval = redrawInterval
	}
	if now.Sub(s.last) < interval {
		return
	}
	s.last = now
	s.state = fmt.Sprintf("%s: %s, %s", s.name, fmt.Sprintf(format, args...), s.elapsed())
	if s.printer.width != nil {
		s.printer.write("")
		return
	}
	s.printer.write(s.state + "\n")
}

// End ends the step, with what came of it unless err says that nothing did; whoever gets err reports it.
func (s *Step) End(err error, format string, args ...any) {
	s.printer.mu.Lock()
	defer s.printer.mu.Unlock()
	s.printer.steps = slices.DeleteFunc(s.printer.steps, func(other *Step) bool { return other == s })
	result := "failed"
	if err == nil {
		result = fmt.Sprintf(format, args...)
	}
	s.printer.write(fmt.Sprintf("%s: %s (%s)\n", s.name, result, s.elapsed()))
}

func (s *Step) elapsed() time.Duration {
	elapsed := time.Since(s.start)
	if elapsed < 10*time.Second {
		return elapsed.Round(100 * time.Millisecond)
	}
	return elapsed.Round(time.Second)
}
