// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// SettingsName is that of the ConfigMap with the settings of an Argo CD.
	SettingsName = "argocd-cm"
	// RespectOption is the sync option without which Argo CD ignores what it is
	// told to ignore when it compares, and not when it syncs.
	RespectOption = "RespectIgnoreDifferences=true"

	customizations = "resource.customizations"
	inClusterURL   = "https://kubernetes.default.svc"
	inClusterName  = "in-cluster"
)

// ArgoCDRule is one entry of ignoreDifferences. A rule by managedFieldsManagers
// is not among them: it holds for fields that the manifest sets to another
// value, and the chart leaves out what is filled in at run time.
type ArgoCDRule struct {
	// Group and Kind are globs.
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind,omitempty"`
	// Name and Namespace are exact; empty is any.
	Name              string   `json:"name,omitempty"`
	Namespace         string   `json:"namespace,omitempty"`
	JSONPointers      []string `json:"jsonPointers,omitempty"`
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
}

// Application is what matters of an Application of Argo CD.
type Application struct {
	Namespace, Name string
	// InCluster: it applies to the cluster that it is in.
	InCluster bool
	// Applied are the objects that its status lists, as Group/Kind/name.
	Applied []string
	// Respects: what is ignored is left alone by syncs too.
	Respects bool
	Rules    []ArgoCDRule
}

// DecodeApplication reads an Application as the API server stores it, in JSON.
// Fields that it does not know are passed over.
func DecodeApplication(raw []byte) (Application, error) {
	var stored struct {
		Metadata struct{ Namespace, Name string }
		Spec     struct {
			Destination       struct{ Server, Name string }
			IgnoreDifferences []ArgoCDRule
			SyncPolicy        struct{ SyncOptions []string }
		}
		Status struct {
			Resources []struct{ Group, Kind, Name string }
		}
	}
	if err := json.Unmarshal(raw, &stored); err != nil {
		return Application{}, fmt.Errorf("decoding an Application: %w", err)
	}
	destination := stored.Spec.Destination
	application := Application{
		Namespace: stored.Metadata.Namespace, Name: stored.Metadata.Name,
		InCluster: destination.Server == inClusterURL || destination.Name == inClusterName,
		Respects:  slices.Contains(stored.Spec.SyncPolicy.SyncOptions, RespectOption),
		Rules:     stored.Spec.IgnoreDifferences,
	}
	for _, r := range stored.Status.Resources {
		application.Applied = append(application.Applied, applied(r.Group, r.Kind, r.Name))
	}
	return application, nil
}

func applied(group, kind, name string) string { return group + "/" + kind + "/" + name }

// Installs tells whether the Application applies an object of this cluster.
// tracking is the object's annotation argocd.argoproj.io/tracking-id, which
// begins with the Application's name, or with its namespace and name where it is
// not in that of Argo CD. Without one it is what its status lists that counts,
// if it applies to this very cluster.
func (a *Application) Installs(o *Object, tracking string) bool {
	if owner, rest, ok := strings.Cut(tracking, ":"); ok && strings.HasPrefix(rest, o.Group+"/"+o.Kind+":") {
		return owner == a.Name || owner == a.Namespace+"_"+a.Name
	}
	return a.InCluster && slices.Contains(a.Applied, applied(o.Group, o.Kind, o.Name))
}

// DecodeSettings reads the rules for all Applications of an Argo CD from the
// data of its ConfigMap argocd-cm. An error names the key; Argo CD does not
// read such a ConfigMap either.
func DecodeSettings(data map[string]string) ([]ArgoCDRule, error) {
	rules := map[string]ArgoCDRule{}
	if err := decodeOverrides(data[customizations], rules); err != nil {
		return nil, fmt.Errorf("key %s: %w", customizations, err)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		target, ours := strings.CutPrefix(key, customizations+".ignoreDifferences.")
		if !ours {
			continue
		}
		rule, err := decodeRule(data[key])
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", key, err)
		}
		parts := strings.Split(target, "_")
		if target == "" || len(parts) > 2 {
			return nil, fmt.Errorf("key %s: it does not end in group_kind, kind or all", key)
		}
		rules[overrideKey(parts)] = rule
	}
	out := make([]ArgoCDRule, 0, len(rules))
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		rule := rules[key]
		group, kind, found := strings.Cut(key, "/")
		if !found {
			group, kind = "", key
		}
		rule.Group, rule.Kind = group, kind
		out = append(out, rule)
	}
	return out, nil
}

func overrideKey(parts []string) string {
	switch {
	case len(parts) == 2:
		return parts[0] + "/" + parts[1]
	case parts[0] == "all":
		return "*/*"
	default:
		return parts[0]
	}
}

// decodeOverrides reads the older form, one YAML for all kinds: a map from
// group/kind, both globs, to a map with YAML in it.
func decodeOverrides(text string, into map[string]ArgoCDRule) error {
	overrides := map[string]struct {
		IgnoreDifferences string `json:"ignoreDifferences"`
	}{}
	if err := yaml.Unmarshal([]byte(text), &overrides); err != nil {
		return err
	}
	for key, override := range overrides {
		rule, err := decodeRule(override.IgnoreDifferences)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		into[key] = rule
	}
	return nil
}

// decodeRule reads what to ignore of a kind; for whom is not in it.
func decodeRule(text string) (ArgoCDRule, error) {
	var what struct {
		JSONPointers      []string `json:"jsonPointers"`
		JQPathExpressions []string `json:"jqPathExpressions"`
	}
	if err := yaml.Unmarshal([]byte(text), &what); err != nil {
		return ArgoCDRule{}, err
	}
	return ArgoCDRule{JSONPointers: what.JSONPointers, JQPathExpressions: what.JQPathExpressions}, nil
}

func (r *ArgoCDRule) matches(o *Object) bool {
	return matchGlob(r.Group, o.Group) && matchGlob(r.Kind, o.Kind) &&
		(r.Name == "" || r.Name == o.Name) && (r.Namespace == "" || r.Namespace == o.Namespace)
}

// JudgeArgoCD tells which fields of an object no rule covers. Rules that fail on
// the object do nothing, as in Argo CD.
func JudgeArgoCD(rules []ArgoCDRule, o *Object) (Verdict, error) {
	document, err := o.sample()
	if err != nil {
		return Verdict{}, err
	}
	unjudged := ""
	for i := range rules {
		if !rules[i].matches(o) {
			continue
		}
		for _, pointer := range rules[i].JSONPointers {
			document = remove(document, pointer)
		}
		for _, expression := range rules[i].JQPathExpressions {
			changed, reason := tryPath(document, expression, o)
			if reason != "" {
				unjudged = reason
			}
			document = changed
		}
	}
	verdict := Verdict{Missing: o.left(document)}
	if !verdict.Covered() {
		verdict.Unjudged = unjudged
	}
	return verdict, nil
}

// tryPath gives the document without what an expression names, and a reason if
// the expression may name more than could be tried out.
func tryPath(document []byte, expression string, o *Object) (changed []byte, unjudged string) {
	changed, err := deletePath(document, expression)
	switch {
	case isTooLong(err):
		return document, fmt.Sprintf("jqPathExpression %q: %v", expression, err)
	case err != nil:
		changed = document
	}
	if o.Metadata == nil && strings.Contains(expression, "metadata") {
		return changed, fmt.Sprintf("jqPathExpression %q looks at metadata: %s", expression, o.Unread)
	}
	return changed, ""
}

// BrokenArgoCD lists the expressions that Argo CD cannot read. One of them is
// enough for it to compare nothing of an Application.
func BrokenArgoCD(rules []ArgoCDRule) []string {
	var out []string
	for _, rule := range rules {
		for _, expression := range rule.JQPathExpressions {
			if _, err := compilePath(expression); err != nil && !isTooLong(err) {
				out = append(out, fmt.Sprintf("jqPathExpression %q: %v", expression, err))
			}
		}
	}
	return out
}
