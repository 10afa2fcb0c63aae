// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// askedTimes remember when the components of an assessment were asked for and the answers changed nothing. A source
// that stays silent would cost a write for each question otherwise. An assessor that begins asks again at once.
type askedTimes struct {
	mu sync.Mutex
	of map[types.NamespacedName]time.Time
}

// remember keeps the time of a question; nil keeps nothing.
func (t *askedTimes) remember(key types.NamespacedName, asked *metav1.Time) {
	if asked == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[types.NamespacedName]time.Time{}
	}
	t.of[key] = asked.Time
}

// recall returns the later one of the stored time and the remembered time of a question.
func (t *askedTimes) recall(key types.NamespacedName, stored *metav1.Time) *metav1.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last := t.of[key]; last.After(timeOf(stored)) {
		return &metav1.Time{Time: last}
	}
	return stored
}

func (t *askedTimes) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, key)
}
