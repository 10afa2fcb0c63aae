// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Survey takes objects one by one and remembers of them what a Report needs.
// It is not safe for concurrent use.
type Survey struct {
	question    Question
	draft       *specguard.GuardSet
	from        time.Time
	excluded    map[string]bool
	autoscalers map[targetKey][]Autoscaler

	// selected asks for the rules of any object that the guard selects: with one
	// guard they are the same for all.
	selected *specguard.Query
	rules    specguard.Rules

	objects    int
	coverage   map[coverageKey]*Coverage
	rows       []row
	writes     []pastWrite
	notJudged  int
	writers    map[writerKey]*writer
	autoscaled []Autoscaled
}

type coverageKey struct{ apiVersion, kind, namespace string }

type targetKey struct {
	GroupKind
	namespace, name string
}

// row is what is kept of every object.
type row struct {
	ObjectRef
	identity specguard.Identity // of a proven stamp
	unproven string
	managers []string
	at       time.Time
}

// NewSurvey begins a survey. The error says what is wrong with the draft, with
// the path of the field.
func NewSurvey(q Question) (*Survey, error) {
	if q.Since <= 0 {
		return nil, errors.New("judging past writes needs a time span longer than 0")
	}
	draft, err := compile(q.Draft, q.Installation.Excluded)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", q.Draft, err)
	}
	s := &Survey{
		question: q, draft: draft, from: q.Now.Add(-q.Since), excluded: map[string]bool{},
		autoscalers: map[targetKey][]Autoscaler{}, coverage: map[coverageKey]*Coverage{}, writers: map[writerKey]*writer{},
	}
	for _, namespace := range q.Installation.Excluded {
		s.excluded[namespace] = true
	}
	for _, a := range q.Autoscalers {
		key := targetKey{a.Target, a.Namespace, a.TargetName}
		s.autoscalers[key] = append(s.autoscalers[key], a)
	}
	return s, nil
}

// String names the guard as kubectl does.
func (d Draft) String() string {
	if d.Namespace == "" {
		return string(d.Kind) + " " + d.Name
	}
	return string(d.Kind) + " " + d.Namespace + "/" + d.Name
}

// compile makes the draft ready for classifying. Neither its mode nor a
// suspension decides who is trusted.
func compile(d Draft, excluded []string) (*specguard.GuardSet, error) {
	spec := d.Spec.GuardSpec
	spec.Mode, spec.Suspend = v1alpha1.GuardModeAudit, nil
	guard, problems := specguard.Compile(specguard.GuardRef{Namespace: d.Namespace, Name: d.Name}, spec, d.Spec.NamespaceSelector, time.Time{})
	if len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	return specguard.NewGuardSet([]*specguard.Guard{guard}, excluded, specguard.System{}), nil
}

// Add takes one object of a kind that the draft names. Its metadata suffice; it
// is not kept.
func (s *Survey) Add(gvk canon.GVK, object *metav1.ObjectMeta) {
	ref := ObjectRef{APIVersion: apiVersion(gvk), Kind: gvk.Kind, Namespace: object.Namespace, Name: object.Name}
	key := coverageKey{ref.APIVersion, ref.Kind, ref.Namespace}
	covers := s.coverage[key]
	if covers == nil {
		registered := s.question.Installation.Registered
		covers = &Coverage{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace,
			Unregistered: registered != nil && !registered[groupKind(gvk)],
		}
		s.coverage[key] = covers
	}
	if reason, skip := s.passesOver(gvk, object); skip {
		if covers.Skipped == nil {
			covers.Skipped = map[SkipReason]int{}
		}
		covers.Skipped[reason]++
		return
	}
	covers.Objects++
	s.objects++
	s.examine(gvk, ref, object)
}

func (s *Survey) passesOver(gvk canon.GVK, object *metav1.ObjectMeta) (SkipReason, bool) {
	if s.excluded[object.Namespace] {
		return SkipExcluded, true
	}
	if !specguard.IsRoot(specguard.OperationUpdate, gvk, object.OwnerReferences, object.OwnerReferences) {
		return SkipOwned, true
	}
	query := specguard.Query{
		Namespace: object.Namespace, NamespaceLabels: s.question.NamespaceLabels[object.Namespace],
		GVK: gvk, Labels: []map[string]string{object.Labels}, Now: s.question.Now,
	}
	rules := s.draft.Rules(query)
	if rules.Empty() {
		return SkipNotSelected, true
	}
	if s.selected == nil {
		s.selected, s.rules = &query, rules
	}
	return "", false
}

// examine remembers who wrote an object that the guard would cover.
func (s *Survey) examine(gvk canon.GVK, ref ObjectRef, object *metav1.ObjectMeta) {
	writes := s.readWrites(ref, object)
	last := newest(writes)
	stamp := object.Annotations[v1alpha1.AnnotationWriter]
	r := row{ObjectRef: ref}
	if len(last) > 0 {
		r.at = last[0].at
		for _, w := range last {
			r.managers = append(r.managers, w.manager)
		}
		slices.Sort(r.managers)
		r.managers = slices.Compact(r.managers)
	}
	switch {
	case stamp == "":
	case s.provesStamp(last):
		r.identity = specguard.Identity{User: stamp, Groups: specguard.ParseWriterGroups(object.Annotations[v1alpha1.AnnotationWriterGroups])}
		last[0].identity = r.identity
	default:
		r.unproven = stamp
	}
	if len(s.rows) < MaxRows {
		s.rows = append(s.rows, r)
	}
	for i := range writes {
		s.remember(&writes[i])
	}
	s.noteAutoscalers(gvk, ref, writes)
}

// policyDelay is how long a new policy may take until it bites; a stamp from
// within it may be anybody's.
const policyDelay = 3 * time.Second

// provesStamp tells whether the stamp names the author of the last write: one
// write is the last, and the policy was in force when it was made. Two managers
// within one second cannot be told apart.
func (s *Survey) provesStamp(last []*pastWrite) bool {
	since := s.question.Installation.StampedSince
	return len(last) == 1 && !since.IsZero() && last[0].at.After(since.Add(policyDelay))
}

// remember counts a write for its writer and keeps a recent one to be judged.
func (s *Survey) remember(w *pastWrite) {
	recent := w.at.After(s.from)
	s.writerOf(w).count(w, recent)
	if !recent && (!w.at.IsZero() || w.subresource == "") {
		return
	}
	if len(s.writes) == MaxWrites {
		s.notJudged++
		return
	}
	kept := *w
	kept.paths = slices.Clip(kept.paths)
	s.writes = append(s.writes, kept)
}

func (s *Survey) noteAutoscalers(gvk canon.GVK, ref ObjectRef, writes []pastWrite) {
	for _, a := range s.autoscalers[targetKey{groupKind(gvk), ref.Namespace, ref.Name}] {
		if len(s.autoscaled) == MaxRows {
			return
		}
		found := Autoscaled{ObjectRef: ref, Autoscaler: a.Kind, By: a.Name}
		switch {
		case a.Kind == VerticalPodAutoscaler:
			found.Note = "it changes pods, not this object"
		case scalesReplicas(groupKind(gvk)):
			found.Paths = []string{replicasPath}
			found.Seen = slices.ContainsFunc(writes, func(w pastWrite) bool { return w.scaledBy(a.Kind) })
		default:
			found.Note = "which field of this kind it moves is not known here: name it in expectedWriters"
		}
		s.autoscaled = append(s.autoscaled, found)
	}
}

const replicasPath = "/spec/replicas"

// scalesReplicas tells whether /scale of a kind is /spec/replicas for sure.
func scalesReplicas(gk GroupKind) bool {
	switch gk.Group {
	case "apps":
		return gk.Kind != "DaemonSet"
	case "":
		return gk.Kind == "ReplicationController"
	default:
		return false
	}
}

func apiVersion(gvk canon.GVK) string {
	if gvk.Group == "" {
		return gvk.Version
	}
	return gvk.Group + "/" + gvk.Version
}
