// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// GetBaseline reads the Baseline of t, and explains the error where there is none.
func GetBaseline(ctx context.Context, c *invocation.Cluster, t Target) (*v1alpha1.Baseline, error) {
	baseline := &v1alpha1.Baseline{}
	key := client.ObjectKey{Namespace: t.Namespace, Name: t.baselineName()}
	if err := c.Get(ctx, key, baseline); err != nil {
		return nil, t.explainMissingBaseline(err)
	}
	return baseline, nil
}

// Target is an object that the command line names. It need not exist: an object that is
// missing has a Baseline all the same.
type Target struct {
	Mapping         *meta.RESTMapping
	Namespace, Name string
}

// String is the object as kubectl names it: deployment.apps/web.
func (t Target) String() string {
	return actions.NameObject(t.Mapping.GroupVersionKind.GroupKind(), t.Name)
}

func (t Target) baselineName() string {
	return specguard.BaselineName(t.Mapping.Resource.Resource, t.Mapping.Resource.Group, t.Name)
}

// GVK returns the group, version and kind by which the body of t is hashed.
func (t Target) GVK() canon.GVK { return canon.GVK(t.Mapping.GroupVersionKind) }

// explainMissingBaseline turns "baselines … not found" into what it means.
func (t Target) explainMissingBaseline(err error) error {
	if !actions.IsAbsent(err) {
		return err
	}
	return fmt.Errorf("%s in namespace %s has no Baseline: no guard selects it, or the assessor has not seen it yet", t, t.Namespace)
}

// Argument is one TYPE/NAME of the command line; name is empty for TYPE alone.
type Argument struct{ Kind, Name string }

// ParseArguments understands TYPE, TYPE,TYPE, TYPE NAME…, and TYPE/NAME… .
func ParseArguments(cmd *cobra.Command, args []string) ([]Argument, error) {
	if len(args) == 0 {
		return nil, nil
	}
	var parsed []Argument
	if !strings.Contains(args[0], "/") {
		for kind := range strings.SplitSeq(args[0], ",") {
			if kind == "" {
				return nil, invocation.UsageErrorf(cmd, "arguments must consist of a resource type and a name: %q names no type", args[0])
			}
			parsed = append(parsed, expandNames(kind, args[1:])...)
		}
		for _, name := range args[1:] {
			if strings.Contains(name, "/") {
				return nil, invocation.UsageErrorf(cmd, "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. '%s %s resource/<resource_name>' instead of '%s %s resource resource/<resource_name>')",
					invocation.DisplayName, cmd.Name(), invocation.DisplayName, cmd.Name())
			}
		}
		return parsed, checkNames(cmd, parsed)
	}
	for _, arg := range args {
		kind, name, found := strings.Cut(arg, "/")
		if !found || kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, invocation.UsageErrorf(cmd, "arguments in resource/name form must have a single resource and name: %q", arg)
		}
		parsed = append(parsed, Argument{Kind: kind, Name: name})
	}
	return parsed, checkNames(cmd, parsed)
}

func expandNames(kind string, names []string) []Argument {
	if len(names) == 0 {
		return []Argument{{Kind: kind}}
	}
	parsed := make([]Argument, 0, len(names))
	for _, name := range names {
		parsed = append(parsed, Argument{Kind: kind, Name: name})
	}
	return parsed
}

func checkNames(cmd *cobra.Command, args []Argument) error {
	for _, arg := range args {
		if problems := content.IsPathSegmentName(arg.Name); len(problems) > 0 {
			return invocation.UsageErrorf(cmd, "%q is not a name: it %s", arg.Name, strings.Join(problems, ", "))
		}
	}
	return nil
}

// ResolveOne is for the commands that are about one object.
func ResolveOne(c *invocation.Cluster, cmd *cobra.Command, args []string) (Target, error) {
	parsed, err := ParseArguments(cmd, args)
	if err != nil {
		return Target{}, err
	}
	if len(parsed) != 1 || parsed[0].Name == "" {
		return Target{}, invocation.UsageErrorf(cmd, "name one object, as TYPE/NAME or TYPE NAME")
	}
	return resolve(c, parsed[0])
}

func resolve(c *invocation.Cluster, arg Argument) (Target, error) {
	mapping, err := ResolveType(c, arg.Kind)
	if err != nil {
		return Target{}, err
	}
	return Target{Mapping: mapping, Namespace: c.Namespace, Name: arg.Name}, nil
}

// ResolveType reads TYPE as kubectl does: plural, singular or short name, or
// kind, each optionally with version and group.
func ResolveType(c *invocation.Cluster, name string) (*meta.RESTMapping, error) {
	mapping, err := lookUpType(c, name)
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

func lookUpType(c *invocation.Cluster, name string) (*meta.RESTMapping, error) {
	resource, groupResource := schema.ParseResourceArg(name)
	var kind schema.GroupVersionKind
	var err error
	if resource != nil {
		kind, err = c.Mapper.KindFor(*resource)
	}
	if kind.Empty() {
		kind, err = c.Mapper.KindFor(groupResource.WithVersion(""))
	}
	if !kind.Empty() {
		return c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}
	exact, groupKind := schema.ParseKindArg(name)
	if exact != nil {
		if mapping, err := c.Mapper.RESTMapping(exact.GroupKind(), exact.Version); err == nil {
			return mapping, nil
		}
	}
	return c.Mapper.RESTMapping(groupKind)
}
