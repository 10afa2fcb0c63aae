// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// target is an object that the command line names. It need not exist: what is
// missing has a Baseline all the same.
type target struct {
	mapping         *meta.RESTMapping
	namespace, name string
}

// String is the object as kubectl names it: deployment.apps/web.
func (t target) String() string {
	return objectName(t.mapping.GroupVersionKind.GroupKind(), t.name)
}

func (t target) baselineName() string {
	return specguard.BaselineName(t.mapping.Resource.Resource, t.mapping.Resource.Group, t.name)
}

func (t target) gvk() canon.GVK { return canon.GVK(t.mapping.GroupVersionKind) }

func objectName(kind schema.GroupKind, name string) string {
	return strings.ToLower(kind.String()) + "/" + name
}

// baselineObject names the object that a Baseline is about.
func baselineObject(b *v1alpha1.Baseline) string {
	return objectName(targetKind(b).GroupKind(), b.Spec.Target.Name)
}

func targetKind(b *v1alpha1.Baseline) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(b.Spec.Target.APIVersion, b.Spec.Target.Kind)
}

// explainMissingBaseline turns "baselines … not found" into what it means.
func (t target) explainMissingBaseline(err error) error {
	if !actions.IsAbsent(err) {
		return err
	}
	return fmt.Errorf("%s in namespace %s has no Baseline: no guard selects it, or the assessor has not seen it yet", t, t.namespace)
}

// argument is one TYPE/NAME of the command line; name is empty for TYPE alone.
type argument struct{ kind, name string }

// parseArguments understands TYPE, TYPE,TYPE, TYPE NAME…, and TYPE/NAME… .
func parseArguments(cmd *cobra.Command, args []string) ([]argument, error) {
	if len(args) == 0 {
		return nil, nil
	}
	var parsed []argument
	if !strings.Contains(args[0], "/") {
		for kind := range strings.SplitSeq(args[0], ",") {
			if kind == "" {
				return nil, usageErrorf(cmd, "arguments must consist of a resource type and a name: %q names no type", args[0])
			}
			parsed = append(parsed, expandNames(kind, args[1:])...)
		}
		for _, name := range args[1:] {
			if strings.Contains(name, "/") {
				return nil, usageErrorf(cmd, "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. '%s %s resource/<resource_name>' instead of '%s %s resource resource/<resource_name>')",
					displayName, cmd.Name(), displayName, cmd.Name())
			}
		}
		return parsed, checkNames(cmd, parsed)
	}
	for _, arg := range args {
		kind, name, found := strings.Cut(arg, "/")
		if !found || kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, usageErrorf(cmd, "arguments in resource/name form must have a single resource and name: %q", arg)
		}
		parsed = append(parsed, argument{kind: kind, name: name})
	}
	return parsed, checkNames(cmd, parsed)
}

func expandNames(kind string, names []string) []argument {
	if len(names) == 0 {
		return []argument{{kind: kind}}
	}
	parsed := make([]argument, 0, len(names))
	for _, name := range names {
		parsed = append(parsed, argument{kind: kind, name: name})
	}
	return parsed
}

func checkNames(cmd *cobra.Command, args []argument) error {
	for _, arg := range args {
		if problems := content.IsPathSegmentName(arg.name); len(problems) > 0 {
			return usageErrorf(cmd, "%q is not a name: it %s", arg.name, strings.Join(problems, ", "))
		}
	}
	return nil
}

// oneTarget is for the commands that are about one object.
func (c *cluster) oneTarget(cmd *cobra.Command, args []string) (target, error) {
	parsed, err := parseArguments(cmd, args)
	if err != nil {
		return target{}, err
	}
	if len(parsed) != 1 || parsed[0].name == "" {
		return target{}, usageErrorf(cmd, "name one object, as TYPE/NAME or TYPE NAME")
	}
	return c.resolve(parsed[0])
}

func (c *cluster) resolve(arg argument) (target, error) {
	mapping, err := c.resolveType(arg.kind)
	if err != nil {
		return target{}, err
	}
	return target{mapping: mapping, namespace: c.namespace, name: arg.name}, nil
}

// resolveType reads TYPE as kubectl does: plural, singular or short name, or
// kind, each optionally with version and group.
func (c *cluster) resolveType(name string) (*meta.RESTMapping, error) {
	mapping, err := c.lookUpType(name)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the server doesn't have a resource type %q", name)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, fmt.Errorf("%s are not namespaced, and Plumbline guards namespaced objects only", mapping.Resource.GroupResource())
	}
	return mapping, nil
}

func (c *cluster) lookUpType(name string) (*meta.RESTMapping, error) {
	resource, groupResource := schema.ParseResourceArg(name)
	var kind schema.GroupVersionKind
	var err error
	if resource != nil {
		kind, err = c.mapper.KindFor(*resource)
	}
	if kind.Empty() {
		kind, err = c.mapper.KindFor(groupResource.WithVersion(""))
	}
	if !kind.Empty() {
		return c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	exact, groupKind := schema.ParseKindArg(name)
	if exact != nil {
		if mapping, err := c.mapper.RESTMapping(exact.GroupKind(), exact.Version); err == nil {
			return mapping, nil
		}
	}
	return c.mapper.RESTMapping(groupKind)
}
