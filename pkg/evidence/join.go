// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// JoinOptions bound what is judged, for a log that does not go back as far as
// the records do. Both ends may be zero. Everything is matched; only what stays
// without a match is looked at for its time.
type JoinOptions struct {
	Since, Until time.Time
}

func (o JoinOptions) covers(t time.Time) bool {
	return !t.Before(o.Since) && (o.Until.IsZero() || !t.After(o.Until))
}

// JoinReport is what the comparison found.
type JoinReport struct {
	// Matched counts writes that have their record.
	Matched int `json:"matched"`
	// Unchanged counts writes that left the object as it was.
	Unchanged int `json:"unchanged"`
	// Uncertain counts requests that the API server failed and no record tells
	// of: nothing says that they took place.
	Uncertain int `json:"uncertain"`
	// Outside counts what was left out for its time.
	Outside  int       `json:"outside"`
	Problems []Problem `json:"problems"`
}

// OK says that the set of writes is the set of records.
func (r *JoinReport) OK() bool { return len(r.Problems) == 0 }

// marks of a write, and of the record that belongs to it.
type marks struct {
	plan, step     string
	fence, standby bool
}

// version of an object: no two writes leave the same one.
type version struct{ uid, resourceVersion string }

// effect is a record of a write, and whether that write was found.
type effect struct {
	record  Record
	matched bool
}

// joiner matches writes and effects one to one.
type joiner struct {
	options   JoinOptions
	report    *JoinReport
	effects   []*effect
	byMarks   map[marks][]*effect
	byVersion map[version]*effect
	seen      map[version]bool
	steps     map[marks]string // audit id of the step's first write
	bodiless  map[string]bool  // objects written without bodies in the log
	// works are the records of ReleaseWorks by the uid of the work, and order has them as they were read.
	works map[string]*workRecords
	order []*workRecords
}

// Join compares records with the writes of an audit log. A write and a record
// belong together by the version that the write left, uid and resourceVersion,
// if the API server's answer is in the log and was the source of the record;
// else by the marks that a write carries. A write for a ReleaseWork is joined by its mark and by the version
// that the recorded intent of the work binds it to.
func Join(records []Record, log *AuditLog, o JoinOptions) *JoinReport {
	j := newJoiner(records, o)
	if log.Damaged > 0 {
		j.problem(Problem{Kind: ProblemAuditDamaged, Text: fmt.Sprintf("%d lines of the audit log cannot be read", log.Damaged)})
	}
	writes := slices.Clone(log.Writes)
	slices.SortStableFunc(writes, func(a, b Write) int { return a.At.Compare(b.At) })
	certain, uncertain := j.sift(writes)
	rest := slices.DeleteFunc(certain, j.matchVersion)
	rest = slices.DeleteFunc(rest, j.matchMarks)
	rest = slices.DeleteFunc(rest, j.matchWork)
	for _, w := range rest {
		j.without(w)
	}
	for _, w := range uncertain {
		if !j.matchVersion(w) && !j.matchMarks(w) && !j.matchWork(w) {
			j.report.Uncertain++
		}
	}
	j.unmatched()
	j.unmatchedWorks()
	return j.report
}

func newJoiner(records []Record, o JoinOptions) *joiner {
	j := &joiner{
		options: o, report: &JoinReport{Problems: []Problem{}},
		byMarks: map[marks][]*effect{}, byVersion: map[version]*effect{}, seen: map[version]bool{},
		steps: map[marks]string{}, bodiless: map[string]bool{}, works: map[string]*workRecords{},
	}
	for _, r := range records {
		if r.Delivery != nil {
			j.noteWork(r)
			continue
		}
		if !r.Wrote() {
			continue
		}
		e := &effect{record: r}
		j.effects = append(j.effects, e)
		m := marks{r.Plan.UID, fmt.Sprint(r.Step.Index), r.Kind == KindFence, r.Kind == KindStandby}
		j.byMarks[m] = append(j.byMarks[m], e)
		if r.Result.Origin == OriginAPIResponse {
			j.byVersion[version{r.Subject.UID, r.Result.ResourceVersion}] = e
		}
	}
	return j
}

// sift leaves out writes that changed nothing and those that cannot be joined.
func (j *joiner) sift(writes []Write) (certain, uncertain []Write) {
	bodiless := 0
	for _, w := range writes {
		after := version{w.UID, w.After}
		switch {
		case !w.Certain:
			uncertain = append(uncertain, w)
			continue
		case !w.Bodies && !strings.HasPrefix(w.Verb, "delete"):
			bodiless++
			j.bodiless[w.object()] = true
			continue
		case w.After != "" && (w.After == w.Before || j.seen[after]):
			j.report.Unchanged++
			continue
		case w.After != "":
			j.seen[after] = true
		}
		certain = append(certain, w)
		j.countStep(w)
	}
	if bodiless > 0 {
		j.problem(Problem{Kind: ProblemAuditLevel, Text: fmt.Sprintf(
			"the audit log has no bodies for %d writes, so they cannot be joined; its policy needs the level RequestResponse for them", bodiless)})
	}
	return certain, uncertain
}

// countStep reports every write of a step after its first: that is what must
// never be, even if each had its record.
func (j *joiner) countStep(w Write) {
	if w.Plan == "" || w.Fence || w.Standby {
		return
	}
	m := marks{plan: w.Plan, step: w.Step}
	first, again := j.steps[m]
	if !again {
		j.steps[m] = w.AuditID
		return
	}
	j.problem(w.problem(ProblemSeveralWrites, fmt.Sprintf("step %s of plan %s wrote again, after %s", w.Step, w.Plan, first)))
}

// matchVersion by what the write left behind.
func (j *joiner) matchVersion(w Write) bool {
	e := j.byVersion[version{w.UID, w.After}]
	if w.After == "" || e == nil || e.matched {
		return false
	}
	j.match(e, w)
	return true
}

// matchMarks by what the write carries. A record that knows the version from
// the API server's own answer is matched so only where the log lacks the answer.
// A deletion carries no marks; it is known by its object being gone.
func (j *joiner) matchMarks(w Write) bool {
	candidates := j.byMarks[marks{w.Plan, w.Step, w.Fence, w.Standby}]
	if strings.HasPrefix(w.Verb, "delete") {
		candidates = j.effects
	}
	for _, e := range candidates {
		deletion := e.record.Result.Hash == hashAbsent
		switch {
		case e.matched, deletion != strings.HasPrefix(w.Verb, "delete"):
		case deletion && !e.about(w):
		case !deletion && w.After != "" && e.record.Result.Origin == OriginAPIResponse:
		default:
			j.match(e, w)
			return true
		}
	}
	return false
}

func (j *joiner) match(e *effect, w Write) {
	e.matched = true
	j.report.Matched++
	if !e.about(w) {
		p := w.problem(ProblemMismatch, fmt.Sprintf("wrote %s, and its record tells of %s", w.object(), e.record.Subject))
		p.Chain, p.Sequence = e.record.Chain.UID, e.record.Chain.Sequence
		j.problem(p)
	}
}

// about says whether record and write are of one object, as far as both know it.
func (e *effect) about(w Write) bool {
	s := e.record.Subject
	group := ""
	if i := strings.IndexByte(s.APIVersion, '/'); i >= 0 {
		group = s.APIVersion[:i]
	}
	return group == w.Group && s.Namespace == w.Namespace && s.Name == w.Name &&
		(w.UID == "" || w.UID == s.UID) && (w.Kind == "" || w.Kind == s.Kind)
}

// without reports a write that no record tells of. A further write of a step
// has been reported as such already.
func (j *joiner) without(w Write) {
	first, marked := j.steps[marks{plan: w.Plan, step: w.Step}]
	switch {
	case marked && !w.Fence && !w.Standby && first != w.AuditID:
	case !j.options.covers(w.At):
		j.report.Outside++
	default:
		j.problem(w.problem(ProblemWriteWithoutEvidence,
			fmt.Sprintf("%s of %s by %s has no record%s", w.Verb, w.object(), w.User, w.markText())))
	}
}

func (j *joiner) unmatched() {
	for _, e := range j.effects {
		r := e.record
		switch {
		case e.matched, j.bodiless[objectOf(r)]:
		case !j.options.covers(cmpTime(r.Result.At, r.At)):
			j.report.Outside++
		default:
			j.problem(Problem{
				Kind: ProblemEvidenceWithoutWrite, Chain: r.Chain.UID, Sequence: r.Chain.Sequence,
				Name: Name(r.Chain.UID, r.Chain.Sequence),
				Text: fmt.Sprintf("tells that %s became version %s, and the audit log has no such write", r.Subject, r.Result.ResourceVersion),
			})
		}
	}
}

func (j *joiner) problem(p Problem) { j.report.Problems = append(j.report.Problems, p) }

func (w Write) problem(kind ProblemKind, text string) Problem {
	return Problem{Kind: kind, AuditID: w.AuditID, Text: text}
}

func (w Write) markText() string {
	switch {
	case w.Plan == "" && w.Work != "":
		return "; it is marked as a write for the ReleaseWork with uid " + w.Work + ", and no signed record of that work tells of it"
	case w.Plan == "":
		return ""
	}
	return fmt.Sprintf("; it is marked as step %s of plan %s", w.Step, w.Plan)
}

// object is group, namespace and name: what an audit event always knows.
func (w Write) object() string { return objectText(w.Group, w.Namespace, w.Name) }

func objectOf(r Record) string {
	group, _, ok := strings.Cut(r.Subject.APIVersion, "/")
	if !ok {
		group = ""
	}
	return objectText(group, r.Subject.Namespace, r.Subject.Name)
}

func objectText(group, namespace, name string) string {
	return fmt.Sprintf("%s/%s/%s", cmp.Or(group, "core"), namespace, name)
}

// cmpTime is the first that is set.
func cmpTime(times ...time.Time) time.Time { return cmp.Or(times...) }
