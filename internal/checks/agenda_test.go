// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// TestAgenda plays the scripts in testdata/agenda; UPDATE_GOLDEN=1 rewrites them.
//
// Objects are named by one word, times are relative to the beginning, and the
// limits are those of GuardDefaults. A reconciliation is "note", the loop of checks
// is "round", and what becomes of a check is "found", "told" or "failed".
func TestAgenda(t *testing.T) {
	if golden.Updates() {
		if err := flag.Set("rewrite", "true"); err != nil {
			t.Fatal(err)
		}
	}
	datadriven.Walk(t, filepath.Join("testdata", "agenda"), func(t *testing.T, path string) {
		p := &play{t: t, agenda: NewAgenda(), now: epoch, answers: map[string]*Answer{}, limits: limits{maxConcurrent: 100, installation: 10}}
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string { return p.command(d) })
	})
}

// play is the state of one script.
type play struct {
	t       *testing.T
	agenda  *Agenda
	now     time.Time
	limits  limits
	held    map[kube.Key]bool
	answers map[string]*Answer
}

func keyNamed(name string) kube.Key {
	return kube.Key{GroupVersionKind: deployments, Namespace: "shop", Name: name}
}

func (p *play) command(d *datadriven.TestData) string {
	switch d.Cmd {
	case "limits":
		return p.setLimits(d)
	case "note":
		return p.note(d)
	case "advance":
		p.now = p.now.Add(p.duration(d.CmdArgs[0].Key))
		return ""
	case "round":
		return p.round(d)
	case "found", "told", "failed", "gone":
		return p.outcome(d)
	case "show":
		return p.show()
	default:
		d.Fatalf(p.t, "unknown command %s", d.Cmd)
		return ""
	}
}

func (p *play) duration(text string) time.Duration {
	p.t.Helper()
	parsed, err := time.ParseDuration(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return parsed
}

// setLimits: limits max=10 all=20 prod=50
func (p *play) setLimits(d *datadriven.TestData) string {
	p.limits = limits{maxConcurrent: 100, environments: map[string]resync.Percent{}}
	for _, arg := range d.CmdArgs {
		var n int
		d.ScanArgs(p.t, arg.Key, &n)
		switch arg.Key {
		case "max":
			p.limits.maxConcurrent = n
		case "all":
			p.limits.installation = resync.Percent(n)
		default:
			p.limits.environments[arg.Key] = resync.Percent(n)
		}
	}
	return ""
}

// note: note web,db period=3h last=-1h env=prod claim=plan-1 request=x settled=Contended recheck=1m
func (p *play) note(d *datadriven.TestData) string {
	found := Appointment{Recheck: resync.DefaultRecheckInterval}
	found.Timing.LastCheck = p.now
	for _, arg := range d.CmdArgs[1:] {
		value := arg.Vals[0]
		switch arg.Key {
		case "period":
			found.Timing.Period = p.duration(value)
		case "last":
			found.Timing.LastCheck = p.now.Add(p.duration(value))
		case "env":
			found.Environment = value
		case "claim":
			found.Claim = value
		case "request":
			found.Request = value
		case "settled":
			found.Settled = resync.Obstacle(value)
		case "recheck":
			found.Recheck = p.duration(value)
		default:
			d.Fatalf(p.t, "unknown argument %s", arg.Key)
		}
	}
	for name := range strings.SplitSeq(d.CmdArgs[0].Key, ",") {
		found.Timing.UID = name
		found.Told = Told{UID: "u", FullHash: string(version(1).FullHash)}
		p.agenda.Note(keyNamed(name), found, p.now)
	}
	return ""
}

// round starts checks, and prints which, and why the others that are due wait.
// held=web says that the claim of web holds.
func (p *play) round(d *datadriven.TestData) string {
	p.held = map[kube.Key]bool{}
	if arg, ok := d.Arg("held"); ok {
		for _, name := range arg.Vals {
			p.held[keyNamed(name)] = true
		}
	}
	var text strings.Builder
	for _, key := range p.agenda.unanswered(p.now) {
		fmt.Fprintf(&text, "unanswered %s\n", key.Name)
	}
	for _, key := range p.agenda.choose(p.now, p.held, p.limits) {
		if _, _, ok := p.agenda.begin(key); ok {
			fmt.Fprintf(&text, "start %s\n", key.Name)
		}
	}
	for _, name := range p.names() {
		e := p.agenda.entries[keyNamed(name)]
		if !e.running && e.due.By(p.now) && e.obstacle != "" {
			fmt.Fprintf(&text, "wait %s: %s, again %s\n", name, e.obstacle, p.at(e.notBefore))
		}
	}
	fmt.Fprintf(&text, "next round: %s\n", p.at(p.agenda.next()))
	return text.String()
}

// outcome: found web differs | told web | failed web | gone web
func (p *play) outcome(d *datadriven.TestData) string {
	name := d.CmdArgs[0].Key
	key := keyNamed(name)
	switch d.Cmd {
	case "found":
		reading := read(1)
		if d.HasArg("differs") {
			reading = read(2)
		}
		reading.At = p.now
		asked := ""
		if e := p.agenda.entries[key]; e != nil {
			asked = e.Request
		}
		differs, ok := p.agenda.found(key, reading, asked)
		p.answers[name] = p.agenda.AnswerOf(key)
		return fmt.Sprintf("differs %t, taken %t\n", differs, ok)
	case "told":
		p.agenda.EndCheck(key, p.answers[name])
		found := p.agenda.entries[key].Appointment // what the next reconciliation notes
		found.Timing.LastCheck, found.Request = p.answers[name].At, ""
		p.agenda.Note(key, found, p.now)
	case "failed":
		p.agenda.failed(key, p.now)
	case "gone":
		p.agenda.Forget(key)
	}
	return ""
}

func (p *play) names() []string {
	var names []string
	for key := range p.agenda.entries {
		names = append(names, key.Name)
	}
	slices.Sort(names)
	return names
}

// at writes a time as what it is after the beginning.
func (p *play) at(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(epoch).String()
}

func (p *play) show() string {
	var text strings.Builder
	for _, name := range p.names() {
		e := p.agenda.entries[keyNamed(name)]
		fmt.Fprintf(&text, "%s: due %s (%s)", name, p.at(e.due.At), e.due.Basis)
		if e.running {
			text.WriteString(", at work")
		}
		if e.failures > 0 {
			fmt.Fprintf(&text, ", failed %d times", e.failures)
		}
		text.WriteString("\n")
	}
	f := p.agenda.figures(p.now)
	fmt.Fprintf(&text, "%d at work, overdue %s\n", f.running, f.overdue)
	for _, obstacle := range slices.Sorted(maps.Keys(f.waiting)) {
		fmt.Fprintf(&text, "%d wait for %q\n", f.waiting[obstacle], obstacle)
	}
	return text.String()
}

// A check that nobody counts as running is one too many: what begins twice, or ends
// twice, or ends for another, changes nothing.
func TestAChecksEndCountsOnce(t *testing.T) {
	a := NewAgenda()
	due := Appointment{Timing: resync.Timing{UID: "u", Period: time.Hour, LastCheck: epoch.Add(-2 * time.Hour)}}
	a.Note(webKey, due, epoch)
	if _, _, ok := a.begin(webKey); !ok {
		t.Fatal("it does not begin")
	}
	if _, _, ok := a.begin(webKey); ok {
		t.Error("it begins twice")
	}
	if _, ok := a.found(keyNamed("other"), read(1), ""); ok {
		t.Error("another is found")
	}
	a.found(webKey, read(1), "")
	stale := &Answer{}
	a.EndCheck(webKey, stale)
	a.EndCheck(webKey, nil)
	if a.AnswerOf(webKey) == nil || a.figures(epoch).running != 1 {
		t.Error("an answer that is not its own ended it")
	}
	a.EndCheck(webKey, a.AnswerOf(webKey))
	a.failed(webKey, epoch)
	if a.FailuresOf(webKey) != 0 || a.figures(epoch).running != 0 {
		t.Error("it failed after it had ended")
	}
	if _, _, ok := a.begin(keyNamed("other")); ok {
		t.Error("what is not on the agenda begins")
	}
}
