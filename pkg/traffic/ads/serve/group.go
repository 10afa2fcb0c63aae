// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"maps"
	"slices"
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
	// members are woken by the next revision.
	members map[member]struct{}
}

// revision of a group. Nobody changes it.
type revision struct {
	number uint64
	view   *ads.View
}

// member of a group is woken when there is another revision, and does not keep whoever wakes it.
type member interface{ wake() }

// remembered is how many revisions back it is known what changed. A proxy that is
// further behind compares the views.
const remembered = 64

// NewGroup makes one with its first view; nil when there is none yet.
func NewGroup(view *ads.View) *Group {
	return &Group{current: &revision{view: view}, members: map[member]struct{}{}}
}

// Publish goes over to another view. It waits for nobody. One goroutine publishes at a time.
func (g *Group) Publish(view *ads.View) {
	g.mu.Lock()
	woken := g.become(view, ads.Diff(g.current.view, view))
	g.mu.Unlock()
	wake(woken)
}

// PublishChanges goes over to the view that differs from the current one by the keys that are
// gone and the resources that are set; see [ads.View.With]. There has to be one.
func (g *Group) PublishChanges(gone []ads.Key, set []*ads.Resource) {
	view, changed := g.View().With(gone, set)
	g.mu.Lock()
	woken := g.become(view, changed)
	g.mu.Unlock()
	wake(woken)
}

// become makes a view the current one, if it differs, and lists who is to be woken. The lock is held.
func (g *Group) become(view *ads.View, changed []ads.Key) []member {
	before := g.current
	if len(changed) == 0 && before.view != nil {
		return nil
	}
	g.current = &revision{number: before.number + 1, view: view}
	g.past = append(g.past, changed)
	if len(g.past) > remembered {
		g.past[0] = nil
		g.past = g.past[1:]
	}
	return slices.Collect(maps.Keys(g.members))
}

func wake(members []member) {
	for _, m := range members {
		m.wake()
	}
}

// join has a member woken by the revisions after the current one, which is the result.
func (g *Group) join(m member) *revision {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members[m] = struct{}{}
	return g.current
}

func (g *Group) leave(m member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.members, m)
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
