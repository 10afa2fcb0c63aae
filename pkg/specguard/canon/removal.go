// SPDX-License-Identifier: Apache-2.0

package canon

// A removal takes a value out before hashing because the server, not the
// writer, decides it. The table is part of pl1: any change of it is pl2.
type removal struct {
	kinds []GVK
	path  []string // "*" is any element
	// unless keeps the value when it is this string; onlyIf takes it out only
	// when it is this string. Empty: no condition.
	unless, onlyIf string
}

var (
	kindPod         = GVK{Version: "v1", Kind: "Pod"}
	kindService     = GVK{Version: "v1", Kind: "Service"}
	kindClaim       = GVK{Version: "v1", Kind: "PersistentVolumeClaim"}
	kindStatefulSet = GVK{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	kindJob         = GVK{Group: "batch", Version: "v1", Kind: "Job"}
)

// removals is the table, pl1. What is not in it, although one might expect it:
// benign changes such as the restartedAt annotation, which are differences and
// stay so, classified where drift is classified; and the creationTimestamp null
// of embedded templates, which equals its absence anyway.
var removals = []removal{
	// Set by the scheduler through the binding subresource.
	{kinds: []GVK{kindPod}, path: []string{"spec", "nodeName"}},
	// Allocated by the Service registry. "None" makes a Service headless: a
	// choice, never an allocation.
	{kinds: []GVK{kindService}, path: []string{"spec", "clusterIP"}, unless: "None"},
	{kinds: []GVK{kindService}, path: []string{"spec", "clusterIPs"}},
	{kinds: []GVK{kindService}, path: []string{"spec", "ipFamilies"}},
	{kinds: []GVK{kindService}, path: []string{"spec", "ipFamilyPolicy"}, onlyIf: "SingleStack"},
	{kinds: []GVK{kindService}, path: []string{"spec", "healthCheckNodePort"}},
	{kinds: []GVK{kindService}, path: []string{"spec", "ports", "*", "nodePort"}},
	// Bound by the volume controller.
	{kinds: []GVK{kindClaim}, path: []string{"spec", "volumeName"}},
	// Filled in by defaulting, and no part of what is wanted.
	{kinds: []GVK{kindStatefulSet}, path: []string{"spec", "volumeClaimTemplates", "*", "status"}},
	// The Job registry makes selector and labels out of the Job's uid.
	{kinds: []GVK{kindJob}, path: []string{"spec", "selector", "matchLabels", "controller-uid"}},
	{kinds: []GVK{kindJob}, path: []string{"spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"}},
	{kinds: []GVK{kindJob}, path: []string{"spec", "template", "metadata", "labels", "controller-uid"}},
	{kinds: []GVK{kindJob}, path: []string{"spec", "template", "metadata", "labels", "job-name"}},
	{kinds: []GVK{kindJob}, path: []string{"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"}},
	{kinds: []GVK{kindJob}, path: []string{"spec", "template", "metadata", "labels", "batch.kubernetes.io/job-name"}},
}

// removalTree is the table of one kind as a tree, walked along with the parse.
type removalTree struct {
	steps []removalStep
}

type removalStep struct {
	name string
	rule *removal // the rule that ends here, or nil
	next *removalTree
}

var removalTrees = buildRemovalTrees(removals)

func buildRemovalTrees(table []removal) map[GVK]*removalTree {
	trees := map[GVK]*removalTree{}
	for i := range table {
		for _, kind := range table[i].kinds {
			if trees[kind] == nil {
				trees[kind] = &removalTree{}
			}
			trees[kind].add(table[i].path, &table[i])
		}
	}
	return trees
}

func (t *removalTree) add(path []string, rule *removal) {
	step := t.find([]byte(path[0]))
	if step == nil {
		t.steps = append(t.steps, removalStep{name: path[0], next: &removalTree{}})
		step = &t.steps[len(t.steps)-1]
	}
	if len(path) == 1 {
		step.rule = rule
		return
	}
	step.next.add(path[1:], rule)
}

// find is nil-safe: nearly everywhere there is no tree.
func (t *removalTree) find(key []byte) *removalStep {
	if t == nil {
		return nil
	}
	for i := range t.steps {
		if string(key) == t.steps[i].name {
			return &t.steps[i]
		}
	}
	return nil
}

func (s *removalStep) below() *removalTree {
	if s == nil {
		return nil
	}
	return s.next
}

// takes tells whether the rule that ends here, if any, takes this value out.
func (s *removalStep) takes(d *Document, n *node) bool {
	if s == nil || s.rule == nil {
		return false
	}
	is := func(want string) bool { return n.kind == String && string(d.textOf(n)) == want }
	switch {
	case s.rule.unless != "":
		return !is(s.rule.unless)
	case s.rule.onlyIf != "":
		return is(s.rule.onlyIf)
	default:
		return true
	}
}
