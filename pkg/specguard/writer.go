// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// writer is who made a write, as far as it is known.
type writer struct {
	id      Identity
	source  v1alpha1.ActorSource
	manager string
	// proven: the stamp names the author of exactly this write. Nothing else
	// authorizes.
	proven bool
	// guessed: the user made the last write, but perhaps not this change.
	guessed bool
	// claimed: only records without the API server's certificate name the user.
	claimed bool
	// excuses: a record that may turn a change into a mask.
	excuses bool
	// reason that the write itself gave for going past a guard that denies.
	reason string
}

func (w writer) known() bool { return w.id.User != "" }

// ruleTrustedScale names the mask over a change of replicas that a trusted
// writer made through /scale: there is no stamp to prove it, so it is masked
// and not authorized.
const ruleTrustedScale = "trusted-writer-scale"

// judge says what a change by a writer is: authorized, masked, or a finding.
func (s *step) judge(c diff.Change, w writer) writtenChange {
	class, rule := s.in.Rules.ClassifyAt(w.id, c.Path)
	j := writtenChange{Change: c, actor: actorOf(w, class)}
	switch {
	case !w.known(), w.guessed:
	case class == v1alpha1.ActorTrusted && w.proven:
		j.authorized = true
	case class == v1alpha1.ActorTrusted && w.excuses && s.throughScale(c):
		j.mask = ruleTrustedScale
	case class == v1alpha1.ActorExpected && (w.proven || w.excuses):
		j.mask = rule
	}
	return j
}

// throughMain tells whether a write must have come through the main resource,
// where it is stamped: because it changed what no subresource can, because the
// stamp moved, or because managedFields prove it. The last is believed only of
// two versions that followed each other: between others, an entry may have been
// edited.
func (s *step) throughMain(changes []diff.Change, stampBefore string, now *Version, contiguous bool) bool {
	ambiguous := 0
	for _, c := range changes {
		if !stamped(c.Path) {
			continue
		}
		if !s.throughSubresource(c) {
			return true
		}
		if contiguous && mainOwns(now.Managers, c.Path) {
			ambiguous++
		}
	}
	if stampBefore != now.Writer {
		return true
	}
	return len(changes) > 0 && ambiguous == len(changes)
}

// unstampedRoots are the top-level fields at whose changes no stamp is written: the
// policy, like the hash, covers all others, whatever a kind calls them.
var unstampedRoots = []string{"apiVersion", "kind", "metadata", "status"}

// stamped tells whether the stamp policy writes when this path changes.
func stamped(p canon.Path) bool {
	segments := p.Segments()
	return len(segments) > 0 && !slices.Contains(unstampedRoots, segments[0].Name())
}

// throughSubresource tells whether a change could have come through a
// subresource that is not stamped: /scale, pods/resize, pods/ephemeralcontainers.
func (s *step) throughSubresource(c diff.Change) bool {
	if s.throughScale(c) {
		return true
	}
	if s.gvk.Group != "" || s.gvk.Kind != "Pod" {
		return false
	}
	tokens := pathTokens(c.Path)
	if len(tokens) < 2 || tokens[0] != "spec" {
		return false
	}
	return tokens[1] == "ephemeralContainers" || tokens[1] == "resources" ||
		len(tokens) > 3 && slices.Contains(containerLists, tokens[1]) && tokens[3] == "resources"
}

// stampWriter is the author that the stamp of a version names.
func stampWriter(v *Version, proven bool) writer {
	return writer{
		id:     v.stamp(),
		source: v1alpha1.ActorSourceWriterStamp,
		proven: proven, guessed: !proven,
	}
}

// traces is what is left when neither stamp nor record names the writer.
func traces(v *Version, path canon.Path) writer {
	if manager, _, ok := managerOf(v.Managers, path); ok {
		return writer{source: v1alpha1.ActorSourceManagedFields, manager: manager}
	}
	return writer{source: v1alpha1.ActorSourceNone}
}

// recordWriter is the author that one of several records of the same write
// names: the least trusted, for anybody may have sent the others.
func (s *step) recordWriter(records []int, paths []canon.Path) writer {
	best := -1
	worst := v1alpha1.ActorTrusted
	for _, i := range records {
		s.consumed[i] = struct{}{}
		class := s.in.Rules.Classify(s.in.Records[i].Identity, paths)
		if best < 0 || LeastTrusted(worst, class) != worst {
			best, worst = i, class
		}
	}
	r := s.in.Records[best]
	return writer{
		id: r.Identity, source: v1alpha1.ActorSourceAdmission, manager: r.FieldManager,
		claimed: !s.anyAuthenticated(records), excuses: r.Authenticated || !s.in.Rules.AuthenticatedDeletes(),
	}
}

// othersMayCome waits for further records of a write that was just seen, while
// those that are there would excuse it and none of them came with the API
// server's certificate: a forged one may be there before the true one.
func (s *step) othersMayCome(records []int, paths []canon.Path, seenAt time.Time) bool {
	if s.anyAuthenticated(records) {
		return false
	}
	worst := v1alpha1.ActorTrusted
	for _, i := range records {
		worst = LeastTrusted(worst, s.in.Rules.Classify(s.in.Records[i].Identity, paths))
	}
	return len(records) > 0 && worst != v1alpha1.ActorUntrusted && s.waitForRecord(seenAt)
}

// recordsWhere are the indices of this object's records that match, DELETEs
// left out.
func (s *step) recordsWhere(match func(*WriteRecord) bool) []int {
	var found []int
	for i := range s.in.Records {
		r := &s.in.Records[i]
		if r.UID == s.obs.UID && r.Operation != OperationDelete && match(r) {
			found = append(found, i)
		}
	}
	return found
}

// exactRecords are those of one write: same resourceVersion before, same body
// or replicas after.
func (s *step) exactRecords(before string, fullHash canon.Hash, replicas string) []int {
	return s.recordsWhere(func(r *WriteRecord) bool {
		return before != "" && r.ResourceVersionBefore == before && (r.HashAfter == string(fullHash) || r.scaledTo(replicas)) &&
			!s.contradicts(r, s.policyStampedWrite())
	})
}

// contradicts tells whether the stamp of the observed version contradicts a record of an
// update of the main resource. The webhook records an update before the API server
// decides whether to store it, so a tenant may record updates that are refused. If the
// policy stamped the last write, and that was the recorded one, the stamp names its user.
func (s *step) contradicts(r *WriteRecord, byPolicy bool) bool {
	if !byPolicy || r.Operation != OperationUpdate || r.Subresource != "" {
		return false
	}
	last := r.HashAfter == string(s.full) || r.Generation != 0 && r.Generation == s.obs.Generation
	return last && r.User != s.obs.Writer
}

func changedPaths(changes []diff.Change) []canon.Path {
	paths := make([]canon.Path, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	return paths
}
