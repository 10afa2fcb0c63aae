// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const smallestGuard = `resources: [{apiVersion: apps/v1, kind: Deployment}]`

// TestGuards_Resources: a kind that cannot be guarded is refused by name, not
// discovered later by its silence.
func TestGuards_Resources(t *testing.T) {
	cases := resourceCases(32)
	cases["no kind at all is refused"] = specCase{"resources: []", []string{"spec.resources"}, "name at least one kind in resources, or one category in categories"}
	cases["a category is accepted"] = specCase{spec: "categories: [Workloads]"}
	cases["each category is accepted, beside a kind"] = specCase{spec: "categories: [Workloads, Networking, RBAC, Configuration, Availability, Storage]"}
	cases["a category in lower case is refused"] = specCase{"categories: [workloads]", []string{"spec.categories[0]"}, "Unsupported value"}
	cases["a category that does not exist is refused"] = specCase{"categories: [Workloads, Everything]", []string{"spec.categories[1]"}, "Unsupported value"}
	cases["a category twice is refused"] = specCase{"categories: [RBAC, RBAC]", []string{"spec.categories[1]"}, "Duplicate value"}
	runForBothGuards(t, cases)
}

// resourceCases are those of any list of guarded kinds of at most so many items.
func resourceCases(most int) map[string]specCase {
	one := func(apiVersion, kind string) string {
		return fmt.Sprintf("resources: [{apiVersion: %q, kind: %q}]", apiVersion, kind)
	}
	kindPath, versionPath := []string{"spec.resources[0].kind"}, []string{"spec.resources[0].apiVersion"}
	return map[string]specCase{
		"workload kinds are accepted":                       {spec: one("apps/v1", "StatefulSet")},
		"a core kind is accepted":                           {spec: one("v1", "ConfigMap")},
		"a custom kind is accepted and judged at run time":  {spec: one("example.com/v1alpha1", "Widget")},
		"a custom group under k8s.io is custom":             {spec: one("gateway.networking.k8s.io/v1", "HTTPRoute")},
		"a custom kind may be called Secret":                {spec: one("vault.example.com/v1", "Secret")},
		"a custom group with an apps prefix is custom":      {spec: one("apps.example.com/v1", "Thing")},
		"several kinds are accepted":                        {spec: "resources: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: batch/v1, kind: CronJob}]"},
		"Secrets are refused":                               {one("v1", "Secret"), kindPath, "Secrets are never guarded"},
		"a misspelt core kind is refused":                   {one("v1", "ConfigMaps"), kindPath, "not a core kind that can be guarded"},
		"a cluster-scoped core kind is refused":             {one("v1", "Node"), kindPath, "not a core kind that can be guarded"},
		"the Namespace is refused":                          {one("v1", "Namespace"), kindPath, "not a core kind that can be guarded"},
		"a misspelt workload kind is refused":               {one("apps/v1", "Deploymnet"), kindPath, "one of ControllerRevision, DaemonSet, Deployment"},
		"a kind of another built-in group is refused":       {one("batch/v1", "Deployment"), kindPath, "not a kind of batch"},
		"a kind that autoscaling lacks is refused":          {one("autoscaling/v2", "Scale"), kindPath, "HorizontalPodAutoscaler is the only one"},
		"a kind that policy lacks is refused":               {one("policy/v1", "PodSecurityPolicy"), kindPath, "PodDisruptionBudget is the only one"},
		"a cluster-scoped networking kind is refused":       {one("networking.k8s.io/v1", "IngressClass"), kindPath, "one of Ingress, NetworkPolicy"},
		"a cluster-scoped RBAC kind is refused":             {one("rbac.authorization.k8s.io/v1", "ClusterRole"), kindPath, "one of Role, RoleBinding"},
		"a cluster-scoped resource kind is refused":         {one("resource.k8s.io/v1", "DeviceClass"), kindPath, "one of ResourceClaim"},
		"a cluster-scoped scheduling kind is refused":       {one("scheduling.k8s.io/v1", "PriorityClass"), kindPath, "one of PodGroup, Workload"},
		"a cluster-scoped CRD is refused":                   {one("apiextensions.k8s.io/v1", "CustomResourceDefinition"), kindPath, "no namespaced kind"},
		"leases are refused, they beat like a heart":        {one("coordination.k8s.io/v1", "Lease"), kindPath, "no namespaced kind"},
		"events are refused in both groups":                 {one("events.k8s.io/v1", "Event"), kindPath, "no namespaced kind"},
		"a built-in group that does not exist is refused":   {one("app/v1", "Deployment"), versionPath, "one of apps, autoscaling, batch, policy"},
		"the core group in a version that never was":        {one("v2", "Pod"), versionPath, "the core group has one version"},
		"a group without a version is refused":              {one("apps/", "Deployment"), versionPath, "should match"},
		"three segments are refused":                        {one("apps/v1/x", "Deployment"), versionPath, "should match"},
		"Plumbline's own kinds are refused":                 {one("plumbline.dev/v1alpha1", "Baseline"), versionPath, "own kinds are not guarded"},
		"a kind with a space is refused":                    {one("example.com/v1", "Wid get"), kindPath, "should match"},
		"an overlong kind is refused":                       {one("example.com/v1", strings.Repeat("K", 64)), kindPath, "may not be more than 63"},
		"the same kind twice is refused":                    {"resources: [{apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: Pod}]", []string{"spec.resources[1]"}, "Duplicate value"},
		"more kinds than anybody guards are refused":        {"resources: [" + repeat(most+1, "{apiVersion: example.com/v1, kind: K%d}") + "]", []string{"spec.resources"}, fmt.Sprintf("must have at most %d items", most)},
		"the second of two kinds is named when it is wrong": {"resources: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Secret}]", []string{"spec.resources[1].kind"}, "Secrets are never guarded"},
	}
}

// TestGuards_Fields: everything of a guard but its resources.
func TestGuards_Fields(t *testing.T) {
	cases := map[string]specCase{
		"the smallest guard is accepted": {},
	}
	for _, more := range []map[string]specCase{
		selectorCases("selector", "leave it out to select everything"),
		writerCases(), pointerCases("ignore", "spec.ignore"), durationCases(), otherGuardCases(),
	} {
		maps.Copy(cases, more)
	}
	runForBothGuards(t, cases)
}

func TestClusterSpecGuard_NamespaceSelector(t *testing.T) {
	runSpecCases(t, "ClusterSpecGuard", smallestGuard, selectorCases("namespaceSelector", "leave it out to select everything"))
}

func runForBothGuards(t *testing.T, cases map[string]specCase) {
	t.Helper()
	for _, kind := range []string{"SpecGuard", "ClusterSpecGuard"} {
		t.Run(kind, func(t *testing.T) { runSpecCases(t, kind, smallestGuard, cases) })
	}
}

// selectorCases are those of any label selector that must not be empty.
func selectorCases(field, emptyMessage string) map[string]specCase {
	path := "spec." + field
	sel := func(s string) string { return field + ": " + s }
	in := func(s string) string { return path + "." + s }
	return map[string]specCase{
		field + " by label is accepted":                     {spec: sel("{matchLabels: {app: web}}")},
		field + " by expression is accepted":                {spec: sel("{matchExpressions: [{key: app, operator: In, values: [a, b]}, {key: x, operator: DoesNotExist}]}")},
		field + " that is empty is refused":                 {sel("{}"), []string{path}, emptyMessage},
		field + " with empty matchLabels is refused":        {sel("{matchLabels: {}}"), []string{path}, emptyMessage},
		field + " with empty matchExpressions is refused":   {sel("{matchExpressions: []}"), []string{path}, emptyMessage},
		field + " with an unknown operator is refused":      {sel("{matchExpressions: [{key: app, operator: Matches, values: []}]}"), []string{in("matchExpressions")}, "operator is one of"},
		field + " with In and no values is refused":         {sel("{matchExpressions: [{key: app, operator: In}]}"), []string{in("matchExpressions")}, "need values"},
		field + " with Exists and values is refused":        {sel("{matchExpressions: [{key: app, operator: Exists, values: [a]}]}"), []string{in("matchExpressions")}, "take no values"},
		field + " with an empty key is refused":             {sel("{matchExpressions: [{key: '', operator: Exists}]}"), []string{in("matchExpressions")}, "label key"},
		field + " with an empty label key is refused":       {sel("{matchLabels: {'': a}}"), []string{in("matchLabels")}, "label key"},
		field + " with an overlong label value is refused":  {sel("{matchLabels: {a: " + strings.Repeat("v", 64) + "}}"), []string{in("matchLabels")}, "at most 63"},
		field + " with too many labels is refused":          {sel("{matchLabels: {" + repeat(33, "k%d: v") + "}}"), []string{in("matchLabels")}, "at most 32 labels"},
		field + " with too many expressions is refused":     {sel("{matchExpressions: [" + repeat(33, "{key: k%d, operator: Exists}") + "]}"), []string{in("matchExpressions")}, "at most 32 expressions"},
		field + " with too many values is refused":          {sel("{matchExpressions: [{key: a, operator: In, values: [" + repeat(65, "v%d") + "]}]}"), []string{in("matchExpressions")}, "at most 64 values"},
		field + " with a 1 MiB value in a label is refused": {sel("{matchLabels: {a: " + strings.Repeat("v", 1<<20) + "}}"), []string{in("matchLabels")}, "at most 63"},
	}
}

func writerCases() map[string]specCase {
	trusted := func(s string) string { return "trustedWriters: {" + s + "}" }
	expected := func(s string) string { return "expectedWriters: [" + s + "]" }
	return map[string]specCase{
		"trusted writers of every sort are accepted": {spec: trusted(
			"users: ['https://issuer.example#alice'], groups: [sre], serviceAccounts: [{namespace: ci, name: deployer}], serviceAccountNamespaces: [flux-system]")},
		"no trusted writer is accepted, every change is then foreign": {spec: "trustedWriters: {users: []}"},
		"a user name of 1 MiB is refused":                             {trusted("users: [" + strings.Repeat("u", 1<<20) + "]"), []string{"spec.trustedWriters.users[0]"}, "may not be more than 1024"},
		"an empty user name is refused":                               {trusted("users: ['']"), []string{"spec.trustedWriters.users[0]"}, "should be at least 1 chars"},
		"the same user twice is refused":                              {trusted("users: [a, a]"), []string{"spec.trustedWriters.users[1]"}, "Duplicate value"},
		"too many users are refused":                                  {trusted("users: [" + repeat(65, "u%d") + "]"), []string{"spec.trustedWriters.users"}, "must have at most 64 items"},
		"a group name of 1 MiB is refused":                            {trusted("groups: [" + strings.Repeat("g", 1<<20) + "]"), []string{"spec.trustedWriters.groups[0]"}, "may not be more than 1024"},
		"a service account without a namespace is refused":            {trusted("serviceAccounts: [{name: ci}]"), []string{"spec.trustedWriters.serviceAccounts[0].namespace"}, "Required value"},
		"a service account written as a user name is refused":         {trusted("serviceAccounts: [{namespace: ci, name: 'system:serviceaccount:ci:x'}]"), []string{"spec.trustedWriters.serviceAccounts[0].name"}, "should match"},
		"a namespace pattern is refused":                              {trusted("serviceAccountNamespaces: ['team-*']"), []string{"spec.trustedWriters.serviceAccountNamespaces[0]"}, "should match"},
		"an expected writer of a field is accepted": {spec: expected(
			"{name: hpa, writers: {serviceAccounts: [{namespace: kube-system, name: horizontal-pod-autoscaler}]}, paths: [/spec/replicas]}")},
		"an expected writer with a keyed list element is accepted": {spec: expected(
			"{name: injector, writers: {groups: [sidecars]}, paths: ['/spec/template/spec/containers/[name=proxy]/image', '/spec/template/metadata/annotations/example.com~1on']}")},
		"an expected writer that names nobody is refused":    {expected("{name: x, writers: {}, paths: [/spec/replicas]}"), []string{"spec.expectedWriters[0].writers"}, "never applies"},
		"an expected writer with an empty list is refused":   {expected("{name: x, writers: {users: []}, paths: [/spec/replicas]}"), []string{"spec.expectedWriters[0].writers"}, "never applies"},
		"an expected writer without writers is refused":      {expected("{name: x, paths: [/spec/replicas]}"), []string{"spec.expectedWriters[0].writers"}, "Required value"},
		"an expected writer without paths is refused":        {expected("{name: x, writers: {users: [a]}, paths: []}"), []string{"spec.expectedWriters[0].paths"}, "should have at least 1 items"},
		"an expected writer without a name is refused":       {expected("{writers: {users: [a]}, paths: [/spec/replicas]}"), []string{"spec.expectedWriters[0].name"}, "Required value"},
		"two rules of one name are refused":                  {expected("{name: x, writers: {users: [a]}, paths: [/a]}, {name: x, writers: {users: [b]}, paths: [/b]}"), []string{"spec.expectedWriters[1]"}, "Duplicate value"},
		"an expected writer with a broken path is refused":   {expected("{name: x, writers: {users: [a]}, paths: [/ok, spec/replicas]}"), []string{"spec.expectedWriters[0].paths[1]"}, "a path such as"},
		"an expected writer with a bad ~ escape is refused":  {expected("{name: x, writers: {users: [a]}, paths: ['/spec/a~9b']}"), []string{"spec.expectedWriters[0].paths[0]"}, "~0 for ~"},
		"more rules than anybody can read at once, refused":  {expected(repeat(17, "{name: r%d, writers: {users: [a]}, paths: [/a]}")), []string{"spec.expectedWriters"}, "must have at most 16 items"},
		"as many rules as are allowed, each full, are taken": {spec: expected(repeat(16, "{name: r%d, writers: {users: [a]}, paths: ["+repeat(32, "/p%d"+strings.Repeat("/q", 63)+strings.Repeat("r", 370))+"]}"))},
	}
}

// pointerCases are those of any list of paths.
func pointerCases(field, path string) map[string]specCase {
	list := func(s string) string { return field + ": [" + s + "]" }
	first := []string{path + "[0]"}
	return map[string]specCase{
		field + " of a field is accepted":                   {spec: list("/spec/replicas")},
		field + " with escapes is accepted":                 {spec: list("'/spec/template/metadata/annotations/a~1b~0c'")},
		field + " with a wildcard is accepted":              {spec: list("'/spec/template/spec/containers/*/image'")},
		field + " with two keys of an element is accepted":  {spec: list("'/spec/ports/[port=80,protocol=TCP]/name'")},
		field + " without a leading slash is refused":       {list("spec/replicas"), first, "a path such as"},
		field + " with a lone ~ is refused":                 {list("'/spec/a~'"), first, "~0 for ~"},
		field + " with ~7 is refused":                       {list("'/spec/~7'"), first, "~0 for ~"},
		field + " with an open bracket is refused":          {list("'/spec/containers/[name=app'"), first, "[name=app]"},
		field + " with a bracket without a key is refused":  {list("'/spec/containers/[app]'"), first, "[name=app]"},
		field + " with an empty segment is refused":         {list("/spec//replicas"), first, "without empty segments"},
		field + " with a trailing slash is refused":         {list("/spec/"), first, "without empty segments"},
		field + " of the whole object is refused":           {list("/"), first, "should be at least 2 chars"},
		field + " in JSONPath is refused":                   {list("'{.spec.replicas}'"), first, "a path such as"},
		field + " with a path of 2 MiB is refused":          {list("/" + strings.Repeat("a", 2<<20)), first, "may not be more than 512"},
		field + " with too many paths is refused":           {list(repeat(65, "/p%d")), []string{path}, "must have at most 64 items"},
		field + " with the same path twice is refused":      {list("/spec/a, /spec/a"), []string{path + "[1]"}, "Duplicate value"},
		field + " names the wrong path among several":       {list("/spec/a, b, /spec/c"), []string{path + "[1]"}, "a path such as"},
		field + " with the longest paths allowed, is taken": {spec: list(repeat(64, "/%04d"+strings.Repeat("p", 507)))},
	}
}

func durationCases() map[string]specCase {
	cases := map[string]specCase{
		"resyncPeriod of no duration is refused":  {"resyncPeriod: soon", []string{"spec.resyncPeriod"}, "a duration such as"},
		"resyncPeriod as a number is refused":     {"resyncPeriod: 30", []string{"spec.resyncPeriod"}, "must be of type string"},
		"resyncPeriod of 1 MiB digits is refused": {"resyncPeriod: '" + strings.Repeat("9", 1<<20) + "s'", []string{"spec.resyncPeriod"}, "may not be more than 32"},
	}
	for _, ok := range []string{"0s", "1s", "30m", "3h", "1h30m", "24h0m0s", "8760h", "1.5h", "1m30.25s"} {
		cases["resyncPeriod "+ok+" is accepted"] = specCase{spec: "resyncPeriod: " + ok}
	}
	for _, bad := range []string{"-5m", "-0s", "8761h", "999999h", "500ms", "1d", "1w", "0", "1 h", "1h ", "1m1h", "+1h", "0.5s", "h"} {
		message := "from 1s to 8760h, or 0s for never"
		if len(bad) < 2 {
			message = "should be at least 2 chars"
		}
		cases[fmt.Sprintf("resyncPeriod %q is refused", bad)] = specCase{fmt.Sprintf("resyncPeriod: %q", bad), []string{"spec.resyncPeriod"}, message}
	}
	return cases
}

func otherGuardCases() map[string]specCase {
	return map[string]specCase{
		"mode Warn is accepted":                      {spec: "mode: Warn"},
		"a mode that is none is refused":             {"mode: Block", []string{"spec.mode"}, `supported values: "Audit", "Warn", "Deny"`},
		"mode in lower case is refused":              {"mode: audit", []string{"spec.mode"}, "Unsupported value"},
		"managementPolicy Unmanaged is accepted":     {spec: "managementPolicy: Unmanaged"},
		"an unknown managementPolicy is refused":     {"managementPolicy: Observe", []string{"spec.managementPolicy"}, `supported values: "Managed", "Unmanaged"`},
		"objectOverride Lengthen is accepted":        {spec: "objectOverride: Lengthen"},
		"an unknown objectOverride is refused":       {"objectOverride: Allowed", []string{"spec.objectOverride"}, `supported values: "Forbidden", "Lengthen", "Stop"`},
		"authenticatedDeletes Required is accepted":  {spec: "authenticatedDeletes: Required"},
		"authenticatedDeletes as a bool is refused":  {"authenticatedDeletes: true", []string{"spec.authenticatedDeletes"}, "must be of type string"},
		"suspend with reason and until is accepted":  {spec: "suspend: {reason: migration, endTime: '2030-01-01T00:00:00Z'}"},
		"suspend without until is refused":           {"suspend: {reason: migration}", []string{"spec.suspend.endTime"}, "Required value"},
		"suspend without a reason is refused":        {"suspend: {endTime: '2030-01-01T00:00:00Z'}", []string{"spec.suspend.reason"}, "Required value"},
		"suspend with an empty reason is refused":    {"suspend: {reason: '', endTime: '2030-01-01T00:00:00Z'}", []string{"spec.suspend.reason"}, "should be at least 1 chars"},
		"suspend until no date is refused":           {"suspend: {reason: x, endTime: tomorrow}", []string{"spec.suspend.endTime"}, "date-time"},
		"suspend with an overlong reason is refused": {"suspend: {reason: " + strings.Repeat("r", 257) + ", endTime: '2030-01-01T00:00:00Z'}", []string{"spec.suspend.reason"}, "may not be more than 256"},
	}
}

// repeat writes format n times with a running number (those formats that have
// a verb), separated by commas.
func repeat(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ", ")
}

// TestPaths_AsTheParserReadsThem: the rule of the schema and the parser of the
// domain agree, so that no guard is stored that cannot be read. The schema is
// stricter in one point: an empty segment is a slip, no name.
func TestPaths_AsTheParserReadsThem(t *testing.T) {
	for _, path := range []string{
		"/spec/replicas", "/spec/a~0b~1c~2d~3e~4f~5g~6h", "/a~7", "/a~", "/~", "/*", "/a/*/b", "/a*b",
		"/spec/template/spec/containers/[name=app]/image", "/spec/ports/[port=80,protocol=TCP]/name", "/list/[=v]", "/list/[=]",
		"/list/[]", "/list/[a]", "/list/[a=b", "/list/[a=b]c", "/list/a[b=c]", "/list/a]", "/list/[a=b,]", "/list/[,a=b]",
		"/list/[a=b=c]", "/list/[a=b~1c]", "/list/[a=~4]", "/list/[a=~8]", "/list/[a~6b=c]", "/list/[a=b,c=d,e=f]", "/list/[a=b,c=d,e=f,g=h]", "/list/[a=b,c=d,e=f,g=h,i=j]",
		strings.Repeat("/a", 64), strings.Repeat("/a", 65),
		"spec", "//", "/a//b", "/a/", "/0", "/ä/ö", "/a b", "/a\tb", "/a=b", "/a,b",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			_, parseErr := canon.ParsePath(path)
			emptySegment := slices.Contains(strings.Split(strings.TrimPrefix(path, "/"), "/"), "")
			guard := object(t, "SpecGuard", "paths", smallestGuard)
			guard.Object["spec"].(map[string]any)["ignore"] = []any{path}
			schemaErr := dryCreate(t, guard)
			if want := parseErr == nil && !emptySegment; want != (schemaErr == nil) {
				t.Errorf("the parser says %v, the schema says %v", parseErr, schemaErr)
			}
		})
	}
}
