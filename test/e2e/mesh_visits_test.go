// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness"
)

// visits are what a client has counted until now.
type visits struct {
	Started uint64 `json:"started"`
	// Settled orders are those before the oldest one without an answer.
	Settled  uint64            `json:"settled"`
	Answered map[string]uint64 `json:"answered"`
	Moved    map[string]uint64 `json:"moved"`
	// LastSent is when the last order began that each version answered.
	LastSent map[string]time.Time `json:"lastSent"`
	Failed   uint64               `json:"failed"`
	// Spoiled orders failed by the faults of the version that answered; Failed counts them too.
	Spoiled  uint64   `json:"spoiled"`
	Failures []string `json:"failures"`
	Slowest  int64    `json:"slowestMilliseconds"`
	// Calls by gRPC and orders on Sockets are counted apart; nil if the client sends none.
	Calls   *visits `json:"calls"`
	Sockets *visits `json:"sockets"`
}

func (v visits) answered() (n uint64) {
	for _, of := range v.Answered {
		n += of
	}
	return n
}

// kinds of orders that a client sends.
func (v visits) kinds() map[string]visits {
	kinds := map[string]visits{"orders": v}
	for kind, of := range map[string]*visits{"calls": v.Calls, "WebSockets": v.Sockets} {
		if of != nil {
			kinds[kind] = *of
		}
	}
	return kinds
}

// settled is whether all orders have ended that had begun at an earlier look.
func (v visits) settled(begun visits) bool {
	now := v.kinds()
	for kind, of := range begun.kinds() {
		if now[kind].Settled < of.Started {
			return false
		}
	}
	return true
}

func (v visits) String() string {
	text := ""
	for kind, of := range v.kinds() {
		text += fmt.Sprintf("%s: %d begun, %d settled, answered %v, moved %v, %d failed %q; ", kind, of.Started, of.Settled, of.Answered, of.Moved, of.Failed, of.Failures)
	}
	return text
}

// since is what came after an earlier look.
func (v visits) since(before visits) visits {
	less := func(now, then map[string]uint64) map[string]uint64 {
		left := maps.Clone(now)
		for k, n := range then {
			left[k] -= n
		}
		return left
	}
	v.Started -= before.Started
	v.Failed -= before.Failed
	v.Spoiled -= before.Spoiled
	v.Answered, v.Moved = less(v.Answered, before.Answered), less(v.Moved, before.Moved)
	return v
}

// pod of a client that runs.
func (m *mesh) pod(ctx context.Context, client string) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := cluster.ReadAll(ctx, &pods, m.namespace, runtimeclient.MatchingLabels{"app": client}); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no pod of %s runs", client)
}

func (m *mesh) look(ctx context.Context, client string) (visits, error) {
	pod, err := m.pod(ctx, client)
	if err != nil {
		return visits{}, err
	}
	return m.visitsOf(ctx, pod.Name)
}

func (m *mesh) visitsOf(ctx context.Context, pod string) (visits, error) {
	out, err := cluster.ReadRaw(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/visits", m.namespace, pod))
	if err != nil {
		return visits{}, err
	}
	var v visits
	return v, json.Unmarshal(out, &v)
}

// counted waits for so many more answers.
func (m *mesh) counted(client string, before visits, answers uint64) visits {
	m.Helper()
	var seen visits
	m.must(harness.Eventually(m.Context(), fmt.Sprintf("%d answers for %s", answers, client), patience, func(ctx context.Context) (bool, string) {
		now, err := m.look(ctx, client)
		if err != nil {
			return false, err.Error()
		}
		seen = now.since(before)
		return seen.answered() >= answers, fmt.Sprintf("%+v", seen)
	}))
	return seen
}

// countedAll waits for so many more answers for each client, at the same time.
func (m *mesh) countedAll(answers uint64, clients ...string) map[string]visits {
	m.Helper()
	before, seen := map[string]visits{}, map[string]visits{}
	for _, c := range clients {
		before[c] = m.now(c)
	}
	for _, c := range clients {
		seen[c] = m.counted(c, before[c], answers)
	}
	return seen
}

// now is what a client has counted when all orders have ended that had begun before: an
// order that is counted later was sent after the call.
func (m *mesh) now(client string) (v visits) {
	m.Helper()
	begun, err := m.look(m.Context(), client)
	m.must(err)
	m.eventually(fmt.Sprintf("the first %d orders of %s have ended", begun.Started, client), func(ctx context.Context) (bool, string) {
		if v, err = m.look(ctx, client); err != nil {
			return false, err.Error()
		}
		return v.settled(begun), v.String()
	})
	return v
}

// unharmed fails if a client has lost an order since it began.
func (m *mesh) unharmed(clients ...string) {
	m.Helper()
	for _, c := range clients {
		for kind, v := range m.now(c).kinds() {
			if v.Failed > 0 || v.answered() == 0 {
				m.Errorf("%s, %s: of %d, %d were answered and %d failed: %q", c, kind, v.Started, v.answered(), v.Failed, v.Failures)
			} else {
				m.Logf("%s, %s: %d, none failed, the slowest took %d ms: %v", c, kind, v.Started, v.Slowest, v.Answered)
			}
		}
	}
}
