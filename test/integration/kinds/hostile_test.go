// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/seed"
)

// large is as much as the API server takes for all annotations of an object.
const large = 256 << 10

// manyEntries are far above each bound: 60,000 in a long run. A list that is a set or a
// map takes the API server more than linear time before it validates the list: 60,000
// entries take 12 seconds, also in the finalizers of any object.
func manyEntries() int {
	if os.Getenv(seed.Long) == "1" {
		return 60_000
	}
	return 6_000
}

// TestGuards_HostileFields: each field of a guard that a tenant fills has a bound, and
// the refusal names the field.
func TestGuards_HostileFields(t *testing.T) {
	text := strings.Repeat("x", large)
	cases := map[string]specCase{
		"an apiVersion of 256 KiB is refused":              {"resources: [{apiVersion: " + text + "/v1, kind: K}]", []string{"spec.resources[0].apiVersion"}, "may not be more than"},
		"a kind of 256 KiB is refused":                     {"resources: [{apiVersion: example.com/v1, kind: K" + text + "}]", []string{"spec.resources[0].kind"}, "may not be more than 63"},
		"an empty apiVersion is refused":                   {"resources: [{apiVersion: '', kind: K}]", []string{"spec.resources[0].apiVersion", "spec.resources[0].kind"}, "should be at least"},
		"an empty kind is refused":                         {"resources: [{apiVersion: example.com/v1, kind: ''}]", []string{"spec.resources[0].kind"}, "should be at least"},
		"a kind with control characters is refused":        {`resources: [{apiVersion: example.com/v1, kind: "K\u0001\n"}]`, []string{"spec.resources[0].kind"}, "should match"},
		"an apiVersion with control characters is refused": {`resources: [{apiVersion: "example.com\u0007/v1", kind: K}]`, []string{"spec.resources[0].apiVersion"}, "should match"},
		"far too many kinds are refused":                   {"resources: [" + repeat(manyEntries(), "{apiVersion: e.io/v1, kind: K%d}") + "]", []string{"spec.resources"}, "must have at most 32 items"},
		"far too many users are refused":                   {"trustedWriters: {users: [" + repeat(manyEntries(), "u%d") + "]}", []string{"spec.trustedWriters.users"}, "must have at most 64 items"},
		"far too many paths are refused":                   {"ignore: [" + repeat(manyEntries(), "/p%d") + "]", []string{"spec.ignore"}, "must have at most 64 items"},
		"a service account's name of 256 KiB is refused":   {"trustedWriters: {serviceAccounts: [{namespace: ci, name: " + text + "}]}", []string{"spec.trustedWriters.serviceAccounts[0].name"}, "may not be more than 253"},
		"its namespace of 256 KiB is refused":              {"trustedWriters: {serviceAccounts: [{namespace: " + text + ", name: ci}]}", []string{"spec.trustedWriters.serviceAccounts[0].namespace"}, "may not be more than 63"},
		"a namespace of accounts of 256 KiB is refused":    {"trustedWriters: {serviceAccountNamespaces: [" + text + "]}", []string{"spec.trustedWriters.serviceAccountNamespaces[0]"}, "may not be more than 63"},
		"a rule's name of 256 KiB is refused":              {"expectedWriters: [{name: " + text + ", writers: {users: [a]}, paths: [/a]}]", []string{"spec.expectedWriters[0].name"}, "may not be more than 63"},
		"an expected user of 256 KiB is refused":           {"expectedWriters: [{name: a, writers: {users: [" + text + "]}, paths: [/a]}]", []string{"spec.expectedWriters[0].writers.users[0]"}, "may not be more than 1024"},
		"an expected group of 256 KiB is refused":          {"expectedWriters: [{name: a, writers: {groups: [" + text + "]}, paths: [/a]}]", []string{"spec.expectedWriters[0].writers.groups[0]"}, "may not be more than 1024"},
		"an expected account of 256 KiB is refused":        {"expectedWriters: [{name: a, writers: {serviceAccounts: [{namespace: ci, name: " + text + "}]}, paths: [/a]}]", []string{"spec.expectedWriters[0].writers.serviceAccounts[0].name"}, "may not be more than 253"},
		"far too many expected users are refused":          {"expectedWriters: [{name: a, writers: {users: [" + repeat(manyEntries(), "u%d") + "]}, paths: [/a]}]", []string{"spec.expectedWriters[0].writers.users"}, "must have at most 64 items"},
		"far too many expected paths are refused":          {"expectedWriters: [{name: a, writers: {users: [a]}, paths: [" + repeat(manyEntries(), "/p%d") + "]}]", []string{"spec.expectedWriters[0].paths"}, "must have at most"},
		"an expected path of 256 KiB is refused":           {"expectedWriters: [{name: a, writers: {users: [a]}, paths: [/" + text + "]}]", []string{"spec.expectedWriters[0].paths[0]"}, "may not be more than"},
		"a reason of 256 KiB is refused":                   {"suspend: {reason: " + text + ", endTime: '2030-01-01T00:00:00Z'}", []string{"spec.suspend.reason"}, "may not be more than 256"},
		// Names of people may hold anything; messages of conditions make them printable.
		"a user name of control characters is accepted": {spec: `trustedWriters: {users: ["a\u0001\u0085\u202e\n"]}`},
		"a reason of control characters is accepted":    {spec: `suspend: {reason: "a\u0001\n", endTime: '2030-01-01T00:00:00Z'}`},
	}
	maps.Copy(cases, hostileSelectors("selector"))
	runForBothGuards(t, cases)
}

func TestClusterSpecGuard_HostileFields(t *testing.T) {
	cases := hostileSelectors("namespaceSelector")
	cases["a user of acceptBy of 256 KiB is refused"] = specCase{"acceptBy: {users: [" + strings.Repeat("x", large) + "]}", []string{"spec.acceptBy.users[0]"}, "may not be more than 1024"}
	cases["far too many groups of acceptBy are refused"] = specCase{"acceptBy: {groups: [" + repeat(manyEntries(), "g%d") + "]}", []string{"spec.acceptBy.groups"}, "must have at most 64 items"}
	runSpecCases(t, "ClusterSpecGuard", smallestGuard, cases)
}

func hostileSelectors(field string) map[string]specCase {
	text := strings.Repeat("x", large)
	labels, expressions := fmt.Sprintf("spec.%s.matchLabels", field), fmt.Sprintf("spec.%s.matchExpressions", field)
	return map[string]specCase{
		field + " with far too many labels is refused":    {field + ": {matchLabels: {" + repeat(manyEntries(), "k%d: v") + "}}", []string{labels}, "at most 32 labels"},
		field + " with a label key of 256 KiB is refused": {field + ": {matchLabels: {? " + text + " : v}}", []string{labels}, "label key"},
		// A guard with one of the next two is not in force, and its status names the field.
		field + " with a label value of control characters is accepted": {spec: field + `: {matchLabels: {a: "v\u0001"}}`},
		field + " with an expression's key of 256 KiB is refused":       {field + ": {matchExpressions: [{key: " + text + ", operator: Exists}]}", []string{expressions}, "label key"},
		field + " with an expression's value of 256 KiB is accepted":    {spec: field + ": {matchExpressions: [{key: a, operator: In, values: [" + text + "]}]}"},
		field + " with far too many expressions is refused":             {field + ": {matchExpressions: [" + repeat(manyEntries(), "{key: k%d, operator: Exists}") + "]}", []string{expressions}, "at most 32 expressions"},
		field + " with far too many values is refused":                  {field + ": {matchExpressions: [{key: a, operator: In, values: [" + repeat(manyEntries(), "v%d") + "]}]}", []string{expressions}, "at most 64 values"},
	}
}

// TestBaseline_HostileFields: a person fills only the request to accept.
func TestBaseline_HostileFields(t *testing.T) {
	text := strings.Repeat("x", large)
	runSpecCases(t, "Baseline", smallestBaseline, map[string]specCase{
		"a hash of 256 KiB is refused":                       {"accept: {hash: " + text + ", requestedBy: a}", []string{"spec.accept.hash"}, "may not be more than"},
		"an empty hash is refused":                           {"accept: {hash: '', requestedBy: a}", []string{"spec.accept.hash"}, "should be at least 1 chars"},
		"an empty requester is refused":                      {"accept: {hash: h, requestedBy: ''}", []string{"spec.accept.requestedBy"}, "should be at least 1 chars"},
		"a group of 256 KiB is refused":                      {"accept: {hash: h, requestedBy: a, requestedByGroups: [" + text + "]}", []string{"spec.accept.requestedByGroups[0]"}, "may not be more than"},
		"far too many groups are refused":                    {"accept: {hash: h, requestedBy: a, requestedByGroups: [" + repeat(manyEntries(), "g%d") + "]}", []string{"spec.accept.requestedByGroups"}, "must have at most"},
		"a reason of control characters is accepted":         {spec: `accept: {hash: h, requestedBy: a, reason: "a\u0001\u202e\n"}`},
		"a requester's name of control characters, accepted": {spec: `accept: {hash: h, requestedBy: "a\u0001\n"}`},
		"a target's name of 256 KiB is refused":              {"target: {apiVersion: apps/v1, kind: Deployment, name: " + text + "}", []string{"spec.target.name"}, "may not be more than"},
		"a target's name that is empty is refused":           {"target: {apiVersion: apps/v1, kind: Deployment, name: ''}", []string{"spec.target.name"}, "should be at least 1 chars"},
		"a target's kind of 256 KiB is refused":              {"target: {apiVersion: apps/v1, kind: " + text + ", name: web}", []string{"spec.target.kind"}, "may not be more than"},
	})
}
