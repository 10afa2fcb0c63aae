// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/effect"
)

// heard are the last answers about assessments that are no news. Each question would cost a write otherwise. An assessor
// that begins has heard none, and asks again at once.
type heard struct {
	mu sync.Mutex
	of map[types.NamespacedName]answers
}

// answers to the questions of one look.
type answers struct {
	asked      time.Time
	components []v1alpha1.AssessedComponent
}

// remember keeps the answers of a status; a status without a question has none.
func (h *heard) remember(key types.NamespacedName, status *v1alpha1.EffectivenessAssessmentStatus) {
	if status.AskedTime == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil {
		h.of = map[types.NamespacedName]answers{}
	}
	h.of[key] = answers{status.AskedTime.Time, status.Components}
}

// recall puts the answers into a status, unless the status has later ones.
func (h *heard) recall(key types.NamespacedName, status *v1alpha1.EffectivenessAssessmentStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.of[key]; last.asked.After(timeOf(status.AskedTime)) {
		status.AskedTime, status.Components = &metav1.Time{Time: last.asked}, slices.Clone(last.components)
	}
}

func (h *heard) forget(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.of, key)
}

// isNews says whether a status has more than the time of a question that the status before it has not. While an alert
// decays, all components are asked for again and again, and metrics move. Their values decide only whether the
// assessment ends, so they are stored with the end, or with the next news.
func isNews(before, after *v1alpha1.EffectivenessAssessmentStatus) bool {
	before, after = before.DeepCopy(), after.DeepCopy()
	decays := before.AlertDecay == v1alpha1.DecayActive && after.AlertDecay == v1alpha1.DecayActive && !effect.Phase(after.Phase).Ended()
	for _, s := range []*v1alpha1.EffectivenessAssessmentStatus{before, after} {
		s.AskedTime = nil
		if decays {
			s.Components = slices.DeleteFunc(s.Components, func(c v1alpha1.AssessedComponent) bool { return c.Name == v1alpha1.ComponentMetrics })
		}
	}
	return !equality.Semantic.DeepEqual(before, after)
}
