// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// Facts are what is stored about a release now. They must be read after the cursors: what is read
// before could be older than what is recorded.
type Facts struct {
	// Chain that the records go to, and the Environment whose chain it is; empty if it is none's.
	Chain       string
	Environment string
	// Release as it is stored, or as it was last if it is gone. A release that is gone has no cursor once
	// that is recorded, so the caller looks at it once.
	Release *v1alpha1.ABRelease
	Gone    bool
	// Works of the namespace.
	Works []v1alpha1.ReleaseWork
	Now   time.Time
}

// Next returns the records of a release that are missing, in the order in which they are to be written.
// Builder and place in the chain are the writer's to fill in.
func Next(cursors Cursors, f *Facts) []evidence.Record {
	n := &next{Facts: f, cursor: cursors[string(f.Release.UID)]}
	n.decisions()
	n.works()
	if _, known := cursors[string(f.Release.UID)]; f.Gone && (known || len(n.records) > 0) {
		n.tell(evidence.KindReleaseGone, f.Now, evidence.Delivery{Range: &evidence.Range{First: n.number, Last: n.number}})
	}
	return n.records
}

// Unseen returns a release that is gone, as far as its cursor knows it.
func Unseen(uid string, cursor Cursor) *v1alpha1.ABRelease {
	return &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: cursor.Namespace, Name: cursor.Name, UID: types.UID(uid)}}
}

// next collects the records of one release.
type next struct {
	*Facts
	cursor  Cursor
	records []evidence.Record
	// number is the last line that is recorded with the records so far.
	number int64
}

// history of the release; empty without a rollout.
func (n *next) history() []v1alpha1.RolloutEvent {
	if n.Release.Status.Rollout == nil {
		return nil
	}
	return n.Release.Status.Rollout.History
}

// decisions records the lines of the history after the cursor.
func (n *next) decisions() {
	n.number = n.cursor.Number
	lines, from := n.history(), n.cursor.Weight
	first, last := int64(1), int64(0)
	if len(lines) > 0 {
		first, last = lines[0].Number, lines[len(lines)-1].Number
	}
	if !n.Gone && n.isSetBack(lines, last) {
		n.tell(evidence.KindHistorySetBack, n.Now, evidence.Delivery{Range: &evidence.Range{First: n.cursor.Number, Last: last, Next: first}})
		n.cursor.Occurrence++
		n.cursor.Floor, n.number, from = Place{}, first-1, ""
	}
	if first > n.number+1 {
		n.tell(evidence.KindHistoryGap, n.Now, evidence.Delivery{Range: &evidence.Range{First: n.number + 1, Last: first - 1}})
		n.number, from = first-1, ""
	}
	for i := range lines {
		if lines[i].Number > n.number {
			from = n.decide(&lines[i], from)
		}
	}
}

// isSetBack says whether the history lacks the line of the cursor, or has another one in its place.
func (n *next) isSetBack(lines []v1alpha1.RolloutEvent, last int64) bool {
	if last < n.cursor.Number {
		return true
	}
	at := slices.IndexFunc(lines, func(l v1alpha1.RolloutEvent) bool { return l.Number == n.cursor.Number })
	return at >= 0 && n.cursor.Digest != "" && digestOf(n.Release, &lines[at]) != n.cursor.Digest
}

// decide records one line of the history, and returns its percentage.
func (n *next) decide(line *v1alpha1.RolloutEvent, from string) string {
	decision := &evidence.Decision{Number: line.Number, Run: line.Run, Event: eventOf(line), From: from, To: percentOf(line.TrafficPercentage)}
	if e := n.Release.Status.Effective; e != nil {
		decision.Sequence = e.Sequence
	}
	r := n.tell(evidence.KindReleaseDecision, line.EventTime.Time, evidence.Delivery{Decision: decision})
	r.Subject.Hash = digestOf(n.Release, line)
	in := n.Release.Status.Rollout
	if run := in.Run; run != nil && run.Number == line.Run && endsRun(line.Event) {
		r.Result = evidence.Result{State: wordOf(string(run.State)), Reason: wordOf(run.Reason)}
	}
	if h := in.Handled; h != nil && line.Event == string(rollout.VerbAnswered) && line == lastAnswer(in.History) {
		r.Approver = userOf(h.RequestedBy)
	}
	n.number = line.Number
	return decision.To
}

func endsRun(event string) bool {
	return event == string(rollout.RunPromoted) || event == string(rollout.RunRolledBack)
}

// lastAnswer returns the line of the last request of a person, about which the status says more.
func lastAnswer(lines []v1alpha1.RolloutEvent) *v1alpha1.RolloutEvent {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].Event == string(rollout.VerbAnswered) {
			return &lines[i]
		}
	}
	return nil
}

// works records the intents and the ends of works after the cursor.
func (n *next) works() {
	var own []*v1alpha1.ReleaseWork
	for i := range n.Works {
		if w := &n.Works[i]; w.Spec.ReleaseUID == string(n.Release.UID) {
			own = append(own, w)
		}
	}
	slices.SortStableFunc(own, func(a, b *v1alpha1.ReleaseWork) int {
		return cmp.Or(placeOf(a).compare(placeOf(b)), strings.Compare(string(a.UID), string(b.UID)))
	})
	for _, w := range own {
		told := workOf(w)
		switch {
		case work.Final(w.Status.Phase):
			n.end(w, told)
		case work.NeedsRecord(w, n.Release) && told.Intent != nil && !n.cursor.hasIntent(told):
			r := n.tell(evidence.KindWorkIntended, told.Intent.At, evidence.Delivery{Work: told})
			r.Subject = subjectOfWork(w)
		}
	}
}

// end records the end of a work.
func (n *next) end(w *v1alpha1.ReleaseWork, told *evidence.Work) {
	at := endTime(w)
	if n.cursor.hasEnd(placeOf(w), evidence.EndKey(told.UID, at)) {
		return
	}
	r := n.tell(evidence.KindWorkEnded, at, evidence.Delivery{Work: told})
	r.Subject = subjectOfWork(w)
	r.Result = evidence.Result{State: wordOf(string(w.Status.Phase)), Reason: wordOf(string(w.Status.Reason))}
	if result := w.Status.Result; result != nil {
		r.Result.ResourceVersion, r.Result.Hash, r.Result.At = result.ResourceVersion, hashOf(w.Status.TemplateHash), at
		r.Result.Origin = evidence.OriginRecovered
		if result.Origin == v1alpha1.ResultResponse {
			r.Result.Origin = evidence.OriginAPIResponse
		}
	}
}

// tell adds a record about the release.
func (n *next) tell(kind evidence.Kind, at time.Time, d evidence.Delivery) *evidence.Record {
	d.Environment = n.Environment
	d.Release = &evidence.Release{Namespace: n.Release.Namespace, Name: n.Release.Name, UID: string(n.Release.UID)}
	r := evidence.Record{
		Kind: kind, At: at, Occurrence: n.cursor.Occurrence, Chain: evidence.Chain{UID: n.Chain}, Delivery: &d, InitiatedBy: evidence.InitiatedBySystem,
		Subject: evidence.Subject{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "ABRelease", Namespace: n.Release.Namespace, Name: n.Release.Name, UID: string(n.Release.UID),
			Hash: digestOf(n.Release, d.Range),
		},
	}
	if rollout := n.Release.Spec.Rollout; rollout != nil {
		r.Requester = userOf(rollout.RequestedBy)
	}
	n.records = append(n.records, r)
	return &n.records[len(n.records)-1]
}

// digestOf returns the digest of what a record says about a release. The message of a line is left
// out, since the status shortens it later.
func digestOf(release *v1alpha1.ABRelease, what any) string {
	if line, is := what.(*v1alpha1.RolloutEvent); is {
		what = []any{line.Number, line.EventTime.UTC().Format(time.RFC3339), line.Run, line.Event, percentOf(line.TrafficPercentage)}
	}
	data, err := json.Marshal([]any{release.UID, what})
	if err != nil {
		panic("a line of a history cannot be encoded: " + err.Error()) // strings and numbers always can
	}
	return evidence.Digest(data)
}

var eventPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}(\.[a-z][a-z0-9_]{0,30}){1,3}$`)

// unknownEvent stands for an event whose name is none.
const unknownEvent = "ab.unknown"

func eventOf(line *v1alpha1.RolloutEvent) string {
	if eventPattern.MatchString(line.Event) {
		return line.Event
	}
	return unknownEvent
}

var wordPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// wordOf returns a word; empty for all that is none.
func wordOf(text string) string {
	if wordPattern.MatchString(text) {
		return text
	}
	return ""
}

// maxUser is how many bytes of a user's name a record takes.
const maxUser = 256

// userOf returns the name of a user as a record takes it.
func userOf(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
	if len(name) > maxUser {
		name = strings.ToValidUTF8(name[:maxUser], "")
	}
	return name
}
