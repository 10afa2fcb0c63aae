// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// Group is what one scope sees, revision by revision; [NewGroup] makes one. As long as
// it has no view its proxies wait.
type Group struct {
	mu      sync.Mutex
	current *revision
	// past is what changed in the last revisions, the current one last. Their views are
	// not kept.
	past [][]ads.Key
}

// revision of a group. Nobody changes it, but for closing next.
type revision struct {
	number uint64
	view   *ads.View
	next   chan struct{}
}

// remembered is how many revisions back it is known what changed. A proxy that is
// further behind compares the views.
const remembered = 64

// NewGroup makes one with its first view; nil when there is none yet.
func NewGroup(view *ads.View) *Group {
	return &Group{current: &revision{view: view, next: make(chan struct{})}}
}

// Publish goes over to another view. It waits for nobody. One goroutine publishes at a time.
func (g *Group) Publish(view *ads.View) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.become(view, ads.Diff(g.current.view, view))
}

// PublishChanges goes over to the view that differs from the current one by the keys that are
// gone and the resources that are set; see [ads.View.With]. There has to be one.
func (g *Group) PublishChanges(gone []ads.Key, set []*ads.Resource) {
	view, changed := g.View().With(gone, set)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.become(view, changed)
}

// become makes a view the current one, if it differs. The lock is held.
func (g *Group) become(view *ads.View, changed []ads.Key) {
	before := g.current
	if len(changed) == 0 && before.view != nil {
		return
	}
	g.current = &revision{number: before.number + 1, view: view, next: make(chan struct{})}
	g.past = append(g.past, changed)
	if len(g.past) > remembered {
		g.past[0] = nil
		g.past = g.past[1:]
	}
	close(before.next)
}

// View is the current one; nil when there is none yet.
func (g *Group) View() *ads.View { return g.now().view }

func (g *Group) now() *revision {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.current
}

// since is the current revision, and what changed since another one. A key may be
// there more than once.
func (g *Group) since(before *revision) (*revision, []ads.Key) {
	g.mu.Lock()
	current := g.current
	behind := int(current.number - before.number) //nolint:gosec // numbers only grow, from 0
	var steps [][]ads.Key
	if behind <= len(g.past) {
		steps = g.past[len(g.past)-behind:]
	}
	var changed []ads.Key
	for _, step := range steps {
		if behind == 1 {
			changed = step // shared by all who are that far
			break
		}
		changed = append(changed, step...)
	}
	g.mu.Unlock()
	if behind > len(steps) {
		changed = ads.Diff(before.view, current.view)
	}
	return current, changed
}
