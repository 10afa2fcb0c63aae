// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// pastWrite is an entry of managedFields that owns guarded content: the last
// write of one manager in one way.
type pastWrite struct {
	ref         ObjectRef
	manager     string
	operation   metav1.ManagedFieldsOperationType
	subresource string
	at          time.Time // zero: not recorded
	created     bool
	// paths that are compared, at most maxPaths of total; none of them left: the
	// write was benign.
	paths []canon.Path
	total int
	// identity of the proven stamp, if it names the author of this write.
	identity specguard.Identity
}

func (w *pastWrite) benign() bool { return w.total == 0 }

func (w *pastWrite) scaledBy(kind AutoscalerKind) bool {
	return w.subresource == "scale" && (w.manager == managerHPA || kind == ScaledObject && kedaManagers[w.manager])
}

// readWrites gives the writes that managedFields tell of, those of the status
// left out. An entry that cannot be read stands for the whole object.
func (s *Survey) readWrites(ref ObjectRef, object *metav1.ObjectMeta) []pastWrite {
	var writes []pastWrite
	for i := range object.ManagedFields {
		entry := &object.ManagedFields[i]
		if entry.Subresource == "status" {
			continue
		}
		owned, readable := contentPaths(entry.FieldsV1)
		if readable && len(owned) == 0 {
			continue // metadata alone
		}
		w := pastWrite{ref: ref, manager: entry.Manager, operation: entry.Operation, subresource: entry.Subresource}
		if entry.Time != nil {
			w.at = entry.Time.Time
			w.created = entry.Time.Equal(&object.CreationTimestamp)
		}
		if !readable {
			owned = []canon.Path{{}}
		}
		owned = slices.DeleteFunc(owned, func(p canon.Path) bool { return covered(s.rules.Excluded(), p) })
		w.total = len(owned)
		w.paths = owned[:min(len(owned), maxPaths)]
		writes = append(writes, w)
	}
	slices.SortStableFunc(writes, func(a, b pastWrite) int {
		return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.manager, b.manager), cmp.Compare(a.operation, b.operation), cmp.Compare(a.subresource, b.subresource))
	})
	return writes
}

// newest are the last writes through the main resource, where the stamp is set:
// one, or several of the same second.
func newest(writes []pastWrite) []*pastWrite {
	var last []*pastWrite
	for i := range writes {
		w := &writes[i]
		if w.subresource != "" || w.at.IsZero() {
			continue
		}
		if len(last) > 0 && !w.at.Equal(last[0].at) {
			break // sorted, the newest first
		}
		last = append(last, w)
	}
	return last
}

// writerKey tells writers apart: by user where a stamp proves it, else by manager.
type writerKey struct{ user, manager string }

// writer sums up the writes of one writer.
type writer struct {
	identity specguard.Identity
	managers []string
	// objects it wrote, and recent writes.
	objects, recent int
	counted         ObjectRef // the one counted last: objects come one by one
	last            time.Time
	// benignOnly: it never wrote anything that is compared.
	benignOnly bool
	// scaleOnly: it wrote through /scale alone.
	scaleOnly bool
}

// others collects writers beyond the bound; it is never trusted.
const others = "(others)"

func (s *Survey) writerOf(w *pastWrite) *writer {
	key := writerKey{user: w.identity.User}
	if key.user == "" {
		key.manager = w.manager
	}
	found := s.writers[key]
	if found == nil && len(s.writers) >= maxWriters {
		key = writerKey{manager: others}
		found = s.writers[key]
	}
	if found == nil {
		found = &writer{benignOnly: true, scaleOnly: true}
		if key.manager != others {
			found.identity = w.identity
		}
		s.writers[key] = found
	}
	return found
}

func (w *writer) count(write *pastWrite, recent bool) {
	if w.counted != write.ref {
		w.objects++
		w.counted = write.ref
	}
	if recent {
		w.recent++
	}
	if write.at.After(w.last) {
		w.last = write.at
	}
	w.benignOnly = w.benignOnly && write.benign()
	w.scaleOnly = w.scaleOnly && write.subresource == "scale"
	if !slices.Contains(w.managers, write.manager) && len(w.managers) < maxManagers {
		w.managers = append(w.managers, write.manager)
		slices.Sort(w.managers)
	}
}
