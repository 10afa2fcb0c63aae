// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// ErrAppliedNeeded is returned by Step when the configuration that kubectl apply kept
// decides: load Input.Applied and step again.
var ErrAppliedNeeded = errors.New("the applied configuration is needed")

// Applied is the stamp of the last apply, which is a write that states a desired state. The
// stamp policy takes it off with the next other write of content.
type Applied struct {
	// Stamp holds the version before the write, and by which means it states.
	Stamp string
	// By and Groups are those of the user.
	By     string
	Groups []string
}

// maxAppliedBytes is the longest stamp of an apply, because the name of a manager has at most
// 128 characters. Where no policy sets stamps, each user may write a longer text.
const maxAppliedBytes = 1024

// AppliedStamp reads the stamp of the last apply off the annotations of an object; empty for
// none.
func AppliedStamp(annotations map[string]string) string {
	if stamp := annotations[v1alpha1.AnnotationApplied]; len(stamp) <= maxAppliedBytes {
		return stamp
	}
	return ""
}

// AppliedConfig is the configuration that kubectl apply kept on the object.
type AppliedConfig struct {
	// Loaded says that Config is of the write that the observed stamp names, or that the
	// object has a newer stamp.
	Loaded bool
	Config []byte
}

// appliedMeans is by which means a write states the desired state.
type appliedMeans struct {
	// config: the write changed the configuration that kubectl apply keeps.
	config bool
	// manager made a server-side apply; empty for none.
	manager string
}

// parseApplied reads a stamp: a version, then "last-applied", "manager=" with a name, or
// both. A name may have spaces.
func parseApplied(stamp string) appliedMeans {
	var means appliedMeans
	_, rest, _ := strings.Cut(stamp, " ")
	if rest == "last-applied" || strings.HasPrefix(rest, "last-applied ") {
		means.config, rest = true, strings.TrimPrefix(strings.TrimPrefix(rest, "last-applied"), " ")
	}
	if manager, ok := strings.CutPrefix(rest, "manager="); ok {
		means.manager = manager
	}
	return means
}

// adoptApplied authorizes drift that a trusted writer has stated since: the writer
// applied a configuration that holds the very value, so the write changed no content.
// The stamp must have moved since the object was last looked at, under the policy that
// is in force, because each user may write the annotation while no policy is.
func (s *step) adoptApplied() error {
	if !s.provesApply() {
		return nil
	}
	id := Identity{User: s.obs.Applied.By, Groups: s.obs.Applied.Groups}
	if class, _ := s.in.Rules.ClassifyAt(id, canon.Path{}); class != v1alpha1.ActorTrusted {
		return nil
	}
	means := parseApplied(s.obs.Applied.Stamp)
	if means.config && !s.in.Applied.Loaded {
		return ErrAppliedNeeded
	}
	return s.authorizeApplied(s.listStated(means), id.User)
}

// provesApply tells whether there is drift, and the stamp of applies proves its user.
func (s *step) provesApply() bool {
	last, now := &s.before.Observed, &s.obs.Applied
	return s.st.FindingsTotal > 0 && s.st.Oversized == nil &&
		now.By != "" && now.Stamp != "" && now.Stamp != last.Applied && last.UID == s.obs.UID &&
		s.policyHolds()
}

// listStated lists the drift of which an apply states the whole value. What is removed,
// and an order of elements, no configuration states.
func (s *step) listStated(means appliedMeans) []diff.Change {
	var sources []func(canon.Path, canon.Value) bool
	if means.config {
		if config, err := canon.Parse(s.in.Applied.Config, s.gvk); err == nil {
			defer config.Release()
			if s.isOfTarget(config) {
				sources = append(sources, configStates(config))
			}
		}
	}
	if entry := s.entryOf(means.manager); entry != nil {
		sources = append(sources, managerStates(entry, s.gvk))
	}
	var stated []diff.Change
	for _, c := range s.parts {
		if c.Op == diff.Removed || c.Reordered() || isMasked(s.st.Masks, c) {
			continue
		}
		live := s.doc.Root().Follow(c.Path)
		if slices.ContainsFunc(sources, func(states func(canon.Path, canon.Value) bool) bool { return states(c.Path, live) }) {
			stated = append(stated, c)
		}
	}
	return stated
}

// isOfTarget tells whether a configuration is of the kind and version of the object: a
// field of another version may mean something else.
func (s *step) isOfTarget(config *canon.Document) bool {
	root := config.Root()
	return root.Get("apiVersion").Text() == s.st.Target.APIVersion && root.Get("kind").Text() == s.st.Target.Kind
}

// entryOf finds what a manager applied to the object itself; nil when nothing was.
func (s *step) entryOf(manager string) *metav1.ManagedFieldsEntry {
	for i := range s.obs.Managers {
		e := &s.obs.Managers[i]
		if manager != "" && e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply &&
			e.Subresource == "" && e.APIVersion == s.st.Target.APIVersion {
			return e
		}
	}
	return nil
}

// authorizeApplied moves the authorized body by the stated drift.
func (s *step) authorizeApplied(stated []diff.Change, by string) error {
	if len(stated) == 0 {
		return nil
	}
	out, skipped, err := diff.Apply(s.st.Body, s.gvk, s.withParents(stated))
	if err != nil {
		return fmt.Errorf("moving the authorized body of %s: %w", s.st.Name, err)
	}
	hash, err := GuardedHash(out, s.gvk, s.in.Rules)
	if err != nil {
		return fmt.Errorf("moving the authorized body of %s: %w", s.st.Name, err)
	}
	if string(hash) == s.st.Authorized.Hash { // inside what is not authorized
		return nil
	}
	if err := s.authorize(out, by, s.st.Authorized.Origin); err != nil {
		return err
	}
	s.tellAuthorized(ReasonAuthorized, "revision %d: %s applied the live value of %s",
		s.st.Authorized.Number, by, listPaths(stated, skipped))
	s.parts = nil
	s.compare()
	return nil
}
