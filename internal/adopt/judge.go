// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Report concludes. accounts answers for [Survey.Candidates]; who is missing
// there is unknown and not trusted.
func (s *Survey) Report(accounts Accounts) (Report, error) {
	p := s.propose(accounts)
	rules, err := s.rulesOf(p.draft)
	if err != nil {
		return Report{}, err
	}
	r := Report{
		Guard: s.question.Draft.String(), From: metav1.NewTime(s.from), To: metav1.NewTime(s.question.Now),
		Objects: s.objects, Coverage: s.sortedCoverage(), ExcludedNamespaces: slices.Sorted(maps.Keys(s.excluded)),
		StampsProven: !s.question.Installation.StampedSince.IsZero(),
		LastWrites:   []LastWrite{}, Autoscaled: s.sortedAutoscaled(), Undecided: p.undecided,
		Drift: []Write{}, Undated: []Write{}, Benign: []Write{},
		Proposal: Proposal{Guard: p.draft.object(), Reasons: p.reasons},
	}
	for i := range s.rows {
		r.LastWrites = append(r.LastWrites, s.lastWrite(&s.rows[i], rules, accounts))
	}
	slices.SortFunc(r.LastWrites, func(a, b LastWrite) int { return compareRefs(a.ObjectRef, b.ObjectRef) })
	for i := range s.writes {
		s.judge(&r, &s.writes[i], rules, accounts)
	}
	r.Writes.NotJudged = s.notJudged
	r.Writes.Total += s.notJudged
	for _, list := range [][]Write{r.Drift, r.Undated, r.Benign} {
		slices.SortFunc(list, compareWrites)
	}
	return r, nil
}

// rulesOf are the rules of another guard that selects the same objects.
func (s *Survey) rulesOf(d Draft) (specguard.Rules, error) {
	set, err := compile(d, s.question.Installation.Excluded)
	if err != nil || s.selected == nil {
		return specguard.Rules{}, err
	}
	return set.Rules(*s.selected), nil
}

// judge puts one write where it belongs.
func (s *Survey) judge(r *Report, w *pastWrite, rules specguard.Rules, accounts Accounts) {
	dated := !w.at.IsZero()
	identity, source := s.attribute(w, accounts)
	found := Write{
		ObjectRef: w.ref, User: identity.User, KnownBy: source, Manager: w.manager, Operation: w.operation,
		Subresource: w.subresource, At: timeOf(w.at), PathsTotal: w.total,
	}
	if dated {
		r.Writes.Total++
	}
	if w.benign() && !w.created {
		found.Class, _ = rules.ClassifyAt(identity, canon.Path{})
		if dated {
			r.Writes.Benign++
			r.Benign = append(r.Benign, found)
		}
		return
	}
	var drifting int
	found.Paths, drifting, found.Class = classify(w, identity, rules)
	found.PathsTotal = drifting
	whole, _ := rules.ClassifyAt(identity, canon.Path{})
	found.Created = w.created && whole != v1alpha1.ActorTrusted && whole != v1alpha1.ActorSystem
	switch {
	case drifting == 0 && !found.Created && found.Class == v1alpha1.ActorExpected:
		if dated {
			r.Writes.Expected++
		}
	case drifting == 0 && !found.Created:
		if dated {
			r.Writes.Authorized++
		}
	case dated:
		r.Writes.Drift++
		r.Drift = append(r.Drift, found)
	default:
		r.Writes.Undated++
		r.Undated = append(r.Undated, found)
	}
}

// classify gives the paths that the rules do not leave to the writer, and the
// least trusted class.
func classify(w *pastWrite, id specguard.Identity, rules specguard.Rules) (paths []string, total int, class v1alpha1.ActorClass) {
	whole, _ := rules.ClassifyAt(id, canon.Path{})
	if class = v1alpha1.ActorTrusted; len(w.paths) == 0 {
		class = whole
	}
	for _, p := range w.paths {
		at, _ := rules.ClassifyAt(id, p)
		class = specguard.LeastTrusted(class, at)
		if at != v1alpha1.ActorTrusted && at != v1alpha1.ActorExpected {
			paths = append(paths, p.String())
		}
	}
	total = len(paths)
	// Expectations are about places, and those of the rest are not kept.
	if rest := w.total - len(w.paths); rest > 0 && whole != v1alpha1.ActorTrusted {
		class = specguard.LeastTrusted(class, whole)
		total += rest
	}
	return paths, total, class
}

// attribute names who made a write, as far as anything tells.
func (s *Survey) attribute(w *pastWrite, accounts Accounts) (specguard.Identity, v1alpha1.ActorSource) {
	if w.identity.User != "" {
		return w.identity, v1alpha1.ActorSourceWriterStamp
	}
	if a, ok := s.usualAccount(w); ok && accounts[a] == Exists {
		return specguard.Identity{User: userOf(a)}, v1alpha1.ActorSourceManagedFields
	}
	return specguard.Identity{}, v1alpha1.ActorSourceNone
}

// usualAccount is the account that a manager usually stands for.
func (s *Survey) usualAccount(w *pastWrite) (v1alpha1.ServiceAccountReference, bool) {
	if w.subresource == "scale" {
		switch {
		case w.manager == managerHPA && s.isTarget(w.ref, HorizontalPodAutoscaler):
			return autoscalerAccount, true
		case kedaManagers[w.manager] && s.isTarget(w.ref, ScaledObject):
			return keda.account, true
		}
	}
	tool, ok := deployers[w.manager]
	return tool.account, ok
}

func (s *Survey) isTarget(ref ObjectRef, kind AutoscalerKind) bool {
	gvk := canon.ParseGVK(ref.APIVersion, ref.Kind)
	return slices.ContainsFunc(s.autoscalers[targetKey{groupKind(gvk), ref.Namespace, ref.Name}], func(a Autoscaler) bool { return a.Kind == kind })
}

func (s *Survey) lastWrite(r *row, rules specguard.Rules, accounts Accounts) LastWrite {
	last := LastWrite{
		ObjectRef: r.ObjectRef, Managers: r.managers, At: timeOf(r.at), UnprovenStamp: r.unproven,
		User: r.identity.User, KnownBy: v1alpha1.ActorSourceNone,
	}
	identity := r.identity
	switch {
	case identity.User != "":
		last.KnownBy = v1alpha1.ActorSourceWriterStamp
	case len(r.managers) == 1:
		identity, last.KnownBy = s.attribute(&pastWrite{ref: r.ObjectRef, manager: r.managers[0]}, accounts)
		last.User = identity.User
	}
	last.Class, _ = rules.ClassifyAt(identity, canon.Path{})
	return last
}

func (s *Survey) sortedCoverage() []Coverage {
	list := make([]Coverage, 0, len(s.coverage))
	for _, c := range s.coverage {
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b Coverage) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace))
	})
	return list
}

func (s *Survey) sortedAutoscaled() []Autoscaled {
	list := append([]Autoscaled{}, s.autoscaled...)
	slices.SortFunc(list, func(a, b Autoscaled) int {
		return cmp.Or(compareRefs(a.ObjectRef, b.ObjectRef), cmp.Compare(a.Autoscaler, b.Autoscaler), cmp.Compare(a.By, b.By))
	})
	return list
}

func compareRefs(a, b ObjectRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// compareWrites puts the newest first and those without a time last.
func compareWrites(a, b Write) int {
	return cmp.Or(timeAt(b.At).Compare(timeAt(a.At)), compareRefs(a.ObjectRef, b.ObjectRef), cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Subresource, b.Subresource), slices.Compare(a.Paths, b.Paths))
}

func timeAt(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
