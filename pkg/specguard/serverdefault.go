// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"fmt"
	"slices"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

const (
	// apiServer is the name by which the API server calls itself. It authorizes the
	// revisions that a new default makes.
	apiServer = "system:apiserver"
	// maxToldDefaults bounds the events of one object's new defaults.
	maxToldDefaults = 8
)

// changedWithoutWrite tells whether the API server serves other content than before, although no
// request has written any. A CustomResourceDefinition or an API server that is upgraded
// does that, because defaults are filled in, and unknown fields dropped, when an object
// is read from etcd. The proof is an equal resourceVersion, or, for kinds that count the
// changes of their spec, an equal generation.
func (s *step) changedWithoutWrite() bool {
	last := &s.st.Observed
	if last.UID != s.obs.UID || last.FullHash == "" || last.Hash == HashAbsent || last.FullHash == string(s.full) {
		return false
	}
	switch prev := s.obs.Prev; {
	case s.obs.ResourceVersion == "":
		return false
	case prev != nil && prev.ResourceVersion == s.obs.ResourceVersion:
		return s.wasJudged(prev)
	case prev == nil && last.ResourceVersion == s.obs.ResourceVersion:
		return true
	default:
		return generationCounts(s.gvk) && s.generationStays()
	}
}

// generationStays tells whether the object has the generation with which it was last
// seen. Of a built-in kind that does not count, a client may choose the generation.
func (s *step) generationStays() bool {
	last := &s.st.Observed
	return last.Generation != 0 && last.Generation == s.obs.Generation && last.UID == s.obs.UID &&
		(generationCounts(s.gvk) || !isBuiltIn(s.gvk))
}

// wasJudged tells whether a version is the one of the last step.
func (s *step) wasJudged(v *Version) bool {
	doc, err := canon.Parse(v.Body, s.gvk)
	if err != nil {
		return false
	}
	defer doc.Release()
	return string(doc.Hash()) == s.st.Observed.FullHash
}

// generationCounts tells whether each change of a spec moves the generation of a kind.
// The API server does so for the kinds below, in the strategies of their registries. It
// does so for custom kinds as well, but they cannot be told from kinds of aggregated API
// servers, which may let a client choose the generation.
func generationCounts(gvk canon.GVK) bool {
	switch gvk.Group {
	case "apps":
		return slices.Contains([]string{"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}, gvk.Kind)
	case "batch":
		return slices.Contains([]string{"CronJob", "Job"}, gvk.Kind)
	case "networking.k8s.io":
		return slices.Contains([]string{"Ingress", "NetworkPolicy"}, gvk.Kind)
	case "policy":
		return gvk.Kind == "PodDisruptionBudget"
	default:
		return false
	}
}

// takeServerDefaults authorizes the changes that the API server makes by itself. A change
// in or around drift stays drift: a default inside another writer's container is no part
// of the authorized body.
func (s *step) takeServerDefaults() error {
	changed, complete := s.changedSince()
	if !complete {
		return nil // new differences cannot be told from old ones, and no writer is to blame
	}
	changed = slices.DeleteFunc(changed, s.overlapsDifference)
	if len(changed) == 0 {
		return nil
	}
	out, skipped, err := diff.Apply(s.st.Body, s.gvk, s.withParents(changed))
	if err != nil {
		return fmt.Errorf("taking over new defaults of %s: %w", s.st.Name, err)
	}
	hash, err := GuardedHash(out, s.gvk, s.in.Rules)
	if err != nil {
		return fmt.Errorf("taking over new defaults of %s: %w", s.st.Name, err)
	}
	if string(hash) == s.st.Authorized.Hash {
		return nil
	}
	if err := s.authorize(out, apiServer, s.st.Authorized.Origin); err != nil {
		return err
	}
	s.tellServerDefaults(changed, skipped)
	return nil
}

// overlapsDifference tells whether a change lies at, above or below a finding or a value
// of an expected writer that was there before.
func (s *step) overlapsDifference(c diff.Change) bool {
	for known := range s.knownValues() {
		path, err := canon.ParsePath(known)
		if err != nil || path.IsRoot() || path.Overlaps(c.Path) {
			return true
		}
	}
	return false
}

// tellServerDefaults makes one event for each path, so that those of many objects of a
// kind are the same event.
func (s *step) tellServerDefaults(changed, skipped []diff.Change) {
	told := 0
	for _, c := range changed {
		if slices.ContainsFunc(skipped, func(o diff.Change) bool { return o.Path.Equal(c.Path) }) {
			continue
		}
		if told++; told > maxToldDefaults {
			return
		}
		s.event(EventNormal, ReasonServerDefault, "the API server itself, and no writer, now serves another %s: it is authorized", c.Path)
	}
}
