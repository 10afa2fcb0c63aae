// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// memory keeps the last pair of each release. The zero memory is empty.
type memory struct {
	mu   sync.Mutex
	kept map[types.NamespacedName]memo
}

// memo is a pair, and the look that it was read for.
type memo struct {
	visit Visit
	pair  Pair
}

func (m *memory) find(v *Visit) (Pair, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, is := m.kept[client.ObjectKeyFromObject(v.Release)]
	return kept.pair, is && kept.pair.isSettled() && v.matches(&kept.visit)
}

func (m *memory) note(v *Visit, pair Pair) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[types.NamespacedName]memo{}
	}
	release := &v1alpha1.ABRelease{}
	release.Namespace, release.Name, release.UID, release.Generation = v.Release.Namespace, v.Release.Name, v.Release.UID, v.Release.Generation
	kept := Visit{Release: release, Baseline: v.Baseline, Selector: maps.Clone(v.Selector), BaselineLabels: slices.Clone(v.BaselineLabels), CloneLabels: slices.Clone(v.CloneLabels)}
	m.kept[client.ObjectKeyFromObject(release)] = memo{kept, pair}
}

func (m *memory) forget(release types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, release)
}
