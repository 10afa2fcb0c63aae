// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// An apply states a value whole, or not at all: each part of the live value is in the
// configuration, or is what the API server fills in for a part that is not.

// maxStatedPairs bounds how many pairs of list elements are compared for one value. A
// value that needs more is not stated.
const maxStatedPairs = 1 << 14

// configStates tells of a configuration of kubectl apply which live values it states.
func configStates(config *canon.Document) func(canon.Path, canon.Value) bool {
	return func(path canon.Path, live canon.Value) bool {
		w := configWalk{pairs: maxStatedPairs, workload: isWorkload(config.GVK())}
		return live.Exists() && w.states(followConfig(config.Root(), path), live)
	}
}

// followConfig follows a path in a configuration, where keys of list elements may lack
// the defaults that the API server fills in.
func followConfig(v canon.Value, path canon.Path) canon.Value {
	for _, s := range path.Segments() {
		one, _ := canon.NewPath(s)
		next := v.Follow(one)
		if keys := s.Keys(); !next.Exists() && len(keys) > 1 {
			for i := range keys {
				if slices.Contains(serverDefaults[keys[i].Key], `"`+keys[i].Value+`"`) {
					keys[i].Value = ""
				}
			}
			one, _ = canon.NewPath(canon.Element(keys...))
			next = v.Follow(one)
		}
		v = next
	}
	return v
}

// configWalk compares a configuration with a live value.
type configWalk struct {
	pairs    int
	workload bool
}

func (w *configWalk) states(config, live canon.Value) bool {
	switch {
	case config.Kind() != live.Kind():
		return false
	case live.Kind() == canon.Map:
		return w.statesMap(config, live)
	case live.Kind() == canon.List && live.Mode() == canon.Atomic:
		return w.statesInOrder(config, live)
	case live.Kind() == canon.List:
		return w.statesElements(config, live)
	default:
		return config.Equal(live)
	}
}

func (w *configWalk) statesMap(config, live canon.Value) bool {
	for member := range live.All() {
		key := string(member.Key())
		if member.Covered() && !w.states(config.Get(key), member) && (config.Get(key).Exists() || !w.workload || !isDefaulted(live, member)) {
			return false
		}
	}
	return true
}

func (w *configWalk) statesInOrder(config, live canon.Value) bool {
	if config.Len() != live.Len() {
		return false
	}
	for i := range live.Len() {
		if !w.states(config.Index(i), live.Index(i)) {
			return false
		}
	}
	return true
}

// statesElements finds for each live element one of the configuration that states it.
func (w *configWalk) statesElements(config, live canon.Value) bool {
	for element := range live.All() {
		found := false
		for i := 0; i < config.Len() && !found; i++ {
			if w.pairs--; w.pairs < 0 {
				return false
			}
			found = w.states(config.Index(i), element)
		}
		if !found {
			return false
		}
	}
	return true
}

// managerStates tells of an entry of managedFields which live values its manager applied.
func managerStates(entry *metav1.ManagedFieldsEntry, gvk canon.GVK) func(canon.Path, canon.Value) bool {
	return func(path canon.Path, live canon.Value) bool {
		fields, ok := followFields(entry, path)
		return ok && live.Exists() && fieldsState(fields, live, isWorkload(gvk))
	}
}

// fieldsState tells whether fields that a manager applied make up a live value.
func fieldsState(raw json.RawMessage, live canon.Value, workload bool) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	if len(fields) == 0 { // the value itself, whatever its kind
		return true
	}
	if live.Kind() < canon.List {
		return false
	}
	for i := range live.Len() {
		child := live.Index(i)
		if !child.Covered() {
			continue
		}
		segment := live.ElementSegment(i)
		if live.Kind() == canon.Map {
			segment = canon.Field(string(child.Key()))
		}
		below, ok := fieldOf(fields, segment)
		defaulted := workload && live.Kind() == canon.Map && isDefaulted(live, child)
		if ok && !fieldsState(below, child, workload) || !ok && !defaulted {
			return false
		}
	}
	return true
}

// isWorkload tells whether a kind has pods, so that serverDefaults are its defaults.
func isWorkload(gvk canon.GVK) bool {
	return gvk.Group == "apps" || gvk.Group == "batch" || gvk.Group == "" && gvk.Kind == "Pod"
}

// serverDefaults are what the API server fills in for pods, by field. No field of the
// list has another default elsewhere in the built-in workloads.
var serverDefaults = map[string][]string{
	"terminationMessagePath":   {`"/dev/termination-log"`},
	"terminationMessagePolicy": {`"File"`},
	"protocol":                 {`"TCP"`},
	"scheme":                   {`"HTTP"`},
	"timeoutSeconds":           {`1`},
	"periodSeconds":            {`10`},
	"successThreshold":         {`1`},
	"failureThreshold":         {`3`},
	"defaultMode":              {`420`},
	"resources":                {`{}`},
	"securityContext":          {`{}`},
	"divisor":                  {`"0"`},
	"type":                     {`""`},
	"apiVersion":               {`"v1"`},
}

// isDefaulted tells whether the API server would fill in a member of a map that no
// configuration has.
func isDefaulted(parent, member canon.Value) bool {
	key := string(member.Key())
	if key == "imagePullPolicy" {
		return member.Text() == defaultPullPolicy(parent.Get("image").Text())
	}
	return slices.Contains(serverDefaults[key], string(member.AppendCanonical(nil)))
}

// defaultPullPolicy returns the policy that the API server fills in for an image.
func defaultPullPolicy(image string) string {
	name, _, digest := strings.Cut(image, "@")
	tag := name[strings.LastIndexByte(name, '/')+1:]
	if _, version, ok := strings.Cut(tag, ":"); !digest && (!ok || version == "latest") {
		return "Always"
	}
	return "IfNotPresent"
}
