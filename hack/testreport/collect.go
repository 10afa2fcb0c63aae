// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// module is cut from the paths of packages.
const module = "github.com/plumbline-dev/plumbline/"

// event is a line of go test -json, see go doc test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// The actions that matter. All others tell nothing that the report needs.
const (
	actionOutput = "output"
	actionPass   = "pass"
	actionFail   = "fail"
	actionSkip   = "skip"
	actionBuild  = "build-output"
	actionBroken = "build-fail"
	actionPrint  = "print" // of this program: a line that is no event
)

// packageTime is what a package came to.
type packageTime struct {
	Name    string
	Seconds float64
	Cached  bool // the time says nothing
}

type testTime struct {
	Package, Name string
	Seconds       float64
}

// skippedTest is a test, or a part of one, that did not run.
type skippedTest struct{ Package, Name, Reason string }

// result sums a run up.
type result struct {
	packages []packageTime
	tests    []testTime // those that are no part of another test
	skipped  []skippedTest
	failures []failure
	failed   bool
	crashed  bool // in part: a second run excuses no failure
}

// collector makes a result of events.
type collector struct {
	verbose bool
	running map[string]*packageRun
	order   []string // of running
	result  result
}

// packageRun is a package under test.
type packageRun struct {
	name   string
	output []event // of the package, and of tests that have not ended
	passed map[string]bool
	tests  []testTime
}

func newCollector(verbose bool) *collector {
	return &collector{verbose: verbose, running: map[string]*packageRun{}}
}

// take takes an event in, and returns what is to be printed.
func (c *collector) take(e event) string {
	switch {
	case e.Action == actionPrint:
		return e.Output
	case e.Action == actionBuild:
		return e.Output // the go command tells only of builds that have something to say
	case e.Action == actionBroken:
		c.result.failed, c.result.crashed = true, true
		return ""
	case e.Package == "":
		return ""
	}
	p := c.of(e.Package)
	switch e.Action {
	case actionOutput:
		return c.said(p, e)
	case actionPass, actionFail, actionSkip:
		if e.Test == "" {
			return c.ended(p, e)
		}
		return c.testEnded(p, e)
	}
	return ""
}

// of returns the run of a package, which begins with its first event.
func (c *collector) of(name string) *packageRun {
	p := c.running[name]
	if p == nil {
		p = &packageRun{name: name, passed: map[string]bool{}}
		c.running[name], c.order = p, append(c.order, name)
	}
	return p
}

// said keeps an output until the end of its test decides whether the output is printed.
func (c *collector) said(p *packageRun, e event) string {
	p.output = append(p.output, e)
	c.result.crashed = c.result.crashed || crash.MatchString(strings.TrimSpace(e.Output))
	if c.verbose {
		return e.Output
	}
	return ""
}

// testEnded prints the output of a test that failed; with a test go its parts.
func (c *collector) testEnded(p *packageRun, e event) string {
	p.passed[e.Test] = e.Action != actionFail
	if e.Action == actionSkip {
		c.result.skipped = append(c.result.skipped, skippedTest{cut(p.name), e.Test, p.skipReason(e.Test)})
	}
	if e.Action == actionFail {
		c.result.failed = true
		if f, ok := p.failedTest(e.Test); ok {
			c.result.failures = append(c.result.failures, f)
		}
	}
	if strings.Contains(e.Test, "/") {
		return ""
	}
	p.tests = append(p.tests, testTime{cut(p.name), e.Test, e.Elapsed})
	var mine, others []event
	for _, o := range p.output {
		if o.Test == e.Test || strings.HasPrefix(o.Test, e.Test+"/") {
			mine = append(mine, o)
		} else {
			others = append(others, o)
		}
	}
	p.output = others
	if e.Action != actionFail || c.verbose {
		return ""
	}
	return p.text(mine)
}

// sourceLine is the place with which the testing package begins what a test says.
var sourceLine = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// skipReason finds the last words of a test before it was skipped.
func (p *packageRun) skipReason(test string) string {
	for _, o := range slices.Backward(p.output) {
		if place := sourceLine.FindString(o.Output); o.Test == test && place != "" {
			return strings.TrimSpace(strings.TrimPrefix(o.Output, place))
		}
	}
	return "no reason given"
}

// text joins outputs, without those of tests that passed.
func (p *packageRun) text(outputs []event) string {
	var b strings.Builder
	for _, o := range outputs {
		if !p.passed[o.Test] {
			b.WriteString(o.Output)
		}
	}
	return b.String()
}

// ended prints the line of a package, before it what is left of a package that failed.
func (c *collector) ended(p *packageRun, e event) string {
	delete(c.running, p.name)
	c.order = slices.DeleteFunc(c.order, func(name string) bool { return name == p.name })
	closing := closingLine(p.output)
	cached := strings.Contains(closing, "(cached)")
	if !cached {
		c.result.tests = append(c.result.tests, p.tests...)
	}
	if e.Action == actionFail {
		c.result.failed = true
		c.result.packages = append(c.result.packages, packageTime{Name: cut(p.name), Seconds: e.Elapsed})
		if !slices.ContainsFunc(c.result.failures, func(f failure) bool { return f.Package == cut(p.name) }) {
			c.result.failures = append(c.result.failures, failure{Package: cut(p.name), Lines: gist(p.output, "")})
		}
		text := ""
		if !c.verbose {
			text = p.text(p.output)
		}
		if closing == "" {
			text += fmt.Sprintf("FAIL\t%s\t%.3fs\n", p.name, e.Elapsed)
		}
		return text
	}
	if e.Action == actionSkip { // it has no tests
		return ""
	}
	c.result.packages = append(c.result.packages, packageTime{cut(p.name), e.Elapsed, cached})
	switch {
	case c.verbose && closing != "":
		return ""
	case closing == "":
		return fmt.Sprintf("ok  \t%s\t%.3fs\n", p.name, e.Elapsed)
	}
	return closing
}

// closingLine finds the line with which go test ends a package.
func closingLine(outputs []event) string {
	for _, o := range slices.Backward(outputs) {
		if o.Test == "" && (strings.HasPrefix(o.Output, "ok  \t") || strings.HasPrefix(o.Output, "FAIL\t")) {
			return o.Output
		}
	}
	return ""
}

// end tells which packages have not ended, and sums the run up.
func (c *collector) end() (*result, string) {
	var b strings.Builder
	for _, name := range c.order {
		p := c.running[name]
		if !c.verbose {
			b.WriteString(p.text(p.output))
		}
		fmt.Fprintf(&b, "FAIL\t%s\t[the events end before the package]\n", name)
		c.result.failures = append(c.result.failures, failure{Package: cut(name), Lines: []string{"the events end before the package"}})
		c.result.failed = true
	}
	if len(c.result.packages) == 0 {
		b.WriteString("FAIL\t[no package was tested]\n")
		c.result.failed = true
	}
	return &c.result, b.String()
}

func cut(name string) string { return strings.TrimPrefix(name, module) }
