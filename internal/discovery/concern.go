// SPDX-License-Identifier: Apache-2.0

package discovery

import "sync"

// concern says of which namespaces the pods are part of a decision: those that have a release, or
// something in quarantine. Those who watch these keep it, and before a look is told of: what a pod was
// before that, the look reads.
type concern struct {
	mu sync.Mutex
	// by namespace, the objects that are about its pods.
	by map[string]map[string]bool
}

// set whether an object is about the pods of its namespace.
func (c *concern) set(namespace, object string, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.by[namespace]
	switch {
	case !is:
		if delete(of, object); len(of) == 0 {
			delete(c.by, namespace)
		}
	case of == nil:
		if c.by == nil {
			c.by = map[string]map[string]bool{}
		}
		c.by[namespace] = map[string]bool{object: true}
	default:
		of[object] = true
	}
}

// has says whether the pods of a namespace are part of a decision.
func (c *concern) has(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.by[namespace]) > 0
}
