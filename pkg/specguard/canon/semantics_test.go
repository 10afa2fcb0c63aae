// SPDX-License-Identifier: Apache-2.0

package canon_test

import (
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	pod         = canon.GVK{Version: "v1", Kind: "Pod"}
	service     = canon.GVK{Version: "v1", Kind: "Service"}
	job         = canon.GVK{Group: "batch", Version: "v1", Kind: "Job"}
	statefulSet = canon.GVK{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	gateway     = canon.GVK{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "Gateway"}
	custom      = canon.GVK{Group: "example.com", Version: "v1", Kind: "Widget"}
)

// podSpec stands for the pod template that holds the given members.
func podSpec(members string) string {
	return `{"spec":{"template":{"spec":{` + members + `}}}}`
}

func container(members string) string {
	return podSpec(`"containers":[{"name":"app",` + members + `}]`)
}

func bodyHash(tb testing.TB, body string, gvk canon.GVK, exclude ...string) canon.Hash {
	tb.Helper()
	paths := make([]canon.Path, len(exclude))
	for i := range exclude {
		paths[i] = path(tb, exclude[i])
	}
	h, err := canon.HashBody([]byte(body), gvk, paths...)
	if err != nil {
		tb.Fatalf("hashing %.300s: %v", body, err)
	}
	return h
}

type pair struct {
	gvk  canon.GVK
	a, b string
}

// The corpus of edits that mean something.
func TestEditsThatChangeTheHash(t *testing.T) {
	for name, p := range map[string]pair{
		"the order of args": {deployment, container(`"args":["a","b"]`), container(`"args":["b","a"]`)},
		"the order of command": {
			deployment, container(`"command":["sh","-c"]`), container(`"command":["-c","sh"]`),
		},
		"the order of initContainers": {
			deployment,
			podSpec(`"initContainers":[{"name":"a"},{"name":"b"}]`),
			podSpec(`"initContainers":[{"name":"b"},{"name":"a"}]`),
		},
		"the order of env where a value refers to a variable": {
			deployment,
			container(`"env":[{"name":"A","value":"1"},{"name":"B","value":"x$(A)"}]`),
			container(`"env":[{"name":"B","value":"x$(A)"},{"name":"A","value":"1"}]`),
		},
		"the order of env where the reference is written with an escape": {
			deployment,
			container(`"env":[{"name":"A","value":"1"},{"name":"B","value":"\u0024(A)"}]`),
			container(`"env":[{"name":"B","value":"\u0024(A)"},{"name":"A","value":"1"}]`),
		},
		"the order of two env entries of one name": {
			deployment,
			container(`"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]`),
			container(`"env":[{"name":"A","value":"2"},{"name":"A","value":"1"}]`),
		},
		"the order of an atomic list": {
			deployment,
			podSpec(`"tolerations":[{"key":"a"},{"key":"b"}]`),
			podSpec(`"tolerations":[{"key":"b"},{"key":"a"}]`),
		},
		"the order of any list of a custom resource": {
			custom,
			`{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`,
			`{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}`,
		},
		"2^53 and 2^53+1":                  {custom, `{"spec":{"n":9007199254740992}}`, `{"spec":{"n":9007199254740993}}`},
		"1 and 10":                         {custom, `{"spec":{"n":1}}`, `{"spec":{"n":10}}`},
		"1 and -1":                         {custom, `{"spec":{"n":1}}`, `{"spec":{"n":-1}}`},
		"a number and its text":            {custom, `{"spec":{"n":1}}`, `{"spec":{"n":"1"}}`},
		"huge exponents that differ":       {custom, `{"spec":{"n":1e999999998}}`, `{"spec":{"n":1e999999999}}`},
		"true and false":                   {custom, `{"spec":{"n":true}}`, `{"spec":{"n":false}}`},
		"absent and empty list":            {custom, `{"spec":{}}`, `{"spec":{"n":[]}}`},
		"absent and empty map":             {custom, `{"spec":{}}`, `{"spec":{"n":{}}}`},
		"empty list and empty map":         {custom, `{"spec":{"n":[]}}`, `{"spec":{"n":{}}}`},
		"null and absent in a custom kind": {custom, `{"spec":{"a":1}}`, `{"spec":{"a":1,"b":null}}`},
		"null and an empty map":            {custom, `{"spec":{"b":{}}}`, `{"spec":{"b":null}}`},
		"null in a map in a list":          {custom, `{"spec":{"l":[{}]}}`, `{"spec":{"l":[{"b":null}]}}`},
		"null in a Gateway":                {gateway, `{"spec":{}}`, `{"spec":{"b":null}}`},
		"null in a list":                   {custom, `{"spec":{"n":[null]}}`, `{"spec":{"n":[]}}`},
		"an image":                         {deployment, container(`"image":"a:1"`), container(`"image":"a:2"`)},
		"a nested metadata":                {deployment, `{"spec":{"template":{"metadata":{"labels":{"a":"1"}}}}}`, `{"spec":{"template":{"metadata":{"labels":{"a":"2"}}}}}`},
		"a nested status":                  {custom, `{"spec":{"status":1}}`, `{"spec":{"status":2}}`},
		"top-level members besides":        {canon.GVK{Version: "v1", Kind: "ConfigMap"}, `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`},
		"the protocol of a port":           {deployment, container(`"ports":[{"containerPort":53,"protocol":"TCP"}]`), container(`"ports":[{"containerPort":53,"protocol":"UDP"}]`)},
		"nodeName of a pod template":       {deployment, podSpec(`"nodeName":"a"`), podSpec(`"nodeName":"b"`)},
		"a Service made headless":          {service, `{"spec":{"clusterIP":"10.0.0.1"}}`, `{"spec":{"clusterIP":"None"}}`},
		"a Service made dual-stack":        {service, `{"spec":{"ipFamilyPolicy":"SingleStack"}}`, `{"spec":{"ipFamilyPolicy":"PreferDualStack"}}`},
		"a restart annotation":             {deployment, `{"spec":{"template":{"metadata":{}}}}`, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"x"}}}}}`},
		"a set that lost an element":       {pod, podSet(`[1,2]`), podSet(`[1]`)},
		"a set whose element came twice":   {pod, podSet(`[1,2]`), podSet(`[1,2,2]`)},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := bodyHash(t, p.a, p.gvk), bodyHash(t, p.b, p.gvk); a == b {
				t.Errorf("both hash as %s:\n%s\n%s", a, p.a, p.b)
			}
		})
	}
}

// podSet is a Pod with a list that the schema calls a set.
func podSet(values string) string {
	return `{"spec":{"containers":[{"name":"a","restartPolicyRules":[{"exitCodes":{"operator":"In","values":` + values + `}}]}]}}`
}

// The corpus of edits that mean nothing.
func TestEditsThatKeepTheHash(t *testing.T) {
	for name, p := range map[string]pair{
		"the order of containers": {
			deployment,
			podSpec(`"containers":[{"name":"a"},{"name":"b"}]`),
			podSpec(`"containers":[{"name":"b"},{"name":"a"}]`),
		},
		"the order of env without references": {
			deployment,
			container(`"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]`),
			container(`"env":[{"name":"B","value":"2"},{"name":"A","value":"1"}]`),
		},
		"the order of ports with one number": {
			deployment,
			container(`"ports":[{"containerPort":53,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}]`),
			container(`"ports":[{"containerPort":53,"protocol":"UDP"},{"containerPort":53,"protocol":"TCP"}]`),
		},
		"the order of volumes and volumeMounts": {
			deployment,
			podSpec(`"volumes":[{"name":"a"},{"name":"b"}],"containers":[{"name":"c","volumeMounts":[{"mountPath":"/a"},{"mountPath":"/b"}]}]`),
			podSpec(`"containers":[{"volumeMounts":[{"mountPath":"/b"},{"mountPath":"/a"}],"name":"c"}],"volumes":[{"name":"b"},{"name":"a"}]`),
		},
		"the order of a set": {pod, podSet(`[1,2,137]`), podSet(`[137,1,2]`)},
		"the order of env inside initContainers": {
			deployment,
			podSpec(`"initContainers":[{"name":"a","env":[{"name":"A"},{"name":"B"}]}]`),
			podSpec(`"initContainers":[{"name":"a","env":[{"name":"B"},{"name":"A"}]}]`),
		},
		"the order of keys, and white space": {custom, `{"spec":{"a":1,"b":2}}`, " {\n\"spec\" : {\t\"b\":2,\r\"a\":1 } } "},
		"1, 1.0, 1e0":                        {custom, `{"spec":{"n":[1,1,1,100,0.5]}}`, `{"spec":{"n":[1.0,1e0,0.1E+1,1e2,5e-1]}}`},
		"zeros of every form":                {custom, `{"spec":{"n":[0,0,0,0]}}`, `{"spec":{"n":[-0,0.000,0e7,-0.0e-7]}}`},
		"a huge power of ten":                {custom, `{"spec":{"n":1e999999999}}`, `{"spec":{"n":10.0e999999998}}`},
		"an integer of many digits":          {custom, `{"spec":{"n":100000000000000000000000}}`, `{"spec":{"n":1e23}}`},
		"escapes":                            {custom, `{"spec":{"s":"</é\n\u0001","é":1}}`, `{"spec":{"\u00e9":1,"s":"\u003C\/\u00e9\u000a\u0001"}}`},
		"surrogate pairs":                    {custom, `{"spec":{"s":"😀"}}`, `{"spec":{"s":"\ud83d\ude00"}}`},
		"null and absent in a built-in kind": {service, `{"spec":{"a":1}}`, `{"spec":{"a":1,"b":null}}`},
		"null and absent without a kind":     {canon.GVK{}, `{"spec":{"a":1}}`, `{"spec":{"a":1,"b":null}}`},
		"a template's creationTimestamp null": {
			deployment,
			`{"spec":{"template":{"metadata":{}}}}`, `{"spec":{"template":{"metadata":{"creationTimestamp":null}}}}`,
		},
		"top-level apiVersion, kind, metadata and status": {
			deployment, `{"spec":{}}`, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{},"status":{"replicas":1}}`,
		},
		"the node of a Pod": {pod, `{"spec":{"nodeName":"a"}}`, `{"spec":{"nodeName":"b"}}`},
		"what a Service is allocated": {
			service,
			`{"spec":{"ports":[{"port":80,"protocol":"TCP"}]}}`,
			`{"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack",` +
				`"healthCheckNodePort":30001,"ports":[{"nodePort":30002,"port":80,"protocol":"TCP"}]}}`,
		},
		"what a Job is given": {
			job,
			`{"spec":{"template":{"spec":{}}}}`,
			`{"spec":{"selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"u"}},"template":{"spec":{},"metadata":{"labels":` +
				`{"controller-uid":"u","job-name":"j","batch.kubernetes.io/controller-uid":"u","batch.kubernetes.io/job-name":"j"}}}}}`,
		},
		"the status of a volume claim template": {
			statefulSet,
			`{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"d"}}]}}`,
			`{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"d"},"status":{"phase":"Pending"}}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := bodyHash(t, p.a, p.gvk), bodyHash(t, p.b, p.gvk); a != b {
				t.Errorf("hashes are %s and %s:\n%s\n%s", a, b, p.a, p.b)
			}
		})
	}
}

func TestListsThatDoNotFitTheirSchemaKeepTheirOrder(t *testing.T) {
	for name, lists := range map[string][2]string{
		"a scalar among maps": {`[{"name":"b"},"a"]`, `["a",{"name":"b"}]`},
		"a map as key":        {`[{"name":"b"},{"name":{}}]`, `[{"name":{}},{"name":"b"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := bodyHash(t, podSpec(`"volumes":`+lists[0]), deployment), bodyHash(t, podSpec(`"volumes":`+lists[1]), deployment)
			if a == b {
				t.Errorf("both hash as %s", a)
			}
		})
	}
	if a, b := bodyHash(t, podSet(`[1,{}]`), pod), bodyHash(t, podSet(`[{},1]`), pod); a == b {
		t.Errorf("sets with a map in two orders both hash as %s", a)
	}
}

func TestCanonicalOrderOfKeys(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"absent and null first, then false, true, numbers as text, strings": {
			podSpec(`"volumes":[{"name":"a"},{"name":10},{"name":9},{"name":true},{"name":false},{"name":null},{"x":1},{"name":""}]`),
			podSpec(`"volumes":[{},{"x":1},{"name":false},{"name":true},{"name":10},{"name":9},{"name":""},{"name":"a"}]`),
		},
		"strings by their bytes, not by their escapes": {
			podSpec(`"volumes":[{"name":"a!"},{"name":"a"},{"name":"a\""},{"name":"é"},{"name":"z"},{"name":"a\n"}]`),
			podSpec(`"volumes":[{"name":"a"},{"name":"a\n"},{"name":"a!"},{"name":"a\""},{"name":"z"},{"name":"é"}]`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(parse(t, []byte(tc.body), deployment).AppendCanonical(nil))
			if got != tc.want {
				t.Errorf("canonical form is\n%s, want\n%s", got, tc.want)
			}
		})
	}
}

func TestGuardedHash(t *testing.T) {
	app := `{"name":"app","image":"a:1","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}`
	for name, tc := range map[string]struct {
		gvk     canon.GVK
		exclude []string
		a, b    string
		differ  bool
	}{
		"an excluded field may change": {
			gvk: deployment, exclude: []string{"/spec/replicas"},
			a: `{"spec":{"replicas":1,"paused":true}}`, b: `{"spec":{"replicas":50,"paused":true}}`,
		},
		"an excluded field may come": {
			gvk: deployment, exclude: []string{"/spec/replicas"},
			a: `{"spec":{"paused":true}}`, b: `{"spec":{"replicas":50,"paused":true}}`,
		},
		"another field may not change": {
			gvk: deployment, exclude: []string{"/spec/replicas"}, differ: true,
			a: `{"spec":{"replicas":1,"paused":true}}`, b: `{"spec":{"replicas":1}}`,
		},
		"the first entry of a map may come": {
			gvk: deployment, exclude: []string{"/spec/template/metadata/annotations/a~1b"},
			a: `{"spec":{"template":{"spec":{}}}}`, b: `{"spec":{"template":{"spec":{},"metadata":{"annotations":{"a/b":"1"}}}}}`,
		},
		"an element by its key may come": {
			gvk: deployment, exclude: []string{"/spec/template/spec/containers/[name=sidecar]"},
			a: podSpec(`"containers":[` + app + `]`), b: podSpec(`"containers":[{"name":"sidecar","image":"s"},` + app + `]`),
		},
		"an element by another key may not": {
			gvk: deployment, exclude: []string{"/spec/template/spec/containers/[name=sidecar]"}, differ: true,
			a: podSpec(`"containers":[` + app + `]`), b: podSpec(`"containers":[{"name":"miner","image":"s"},` + app + `]`),
		},
		"a wildcard covers every element": {
			gvk: deployment, exclude: []string{"/spec/template/spec/containers/*/image"},
			a: podSpec(`"containers":[{"name":"a","image":"1"},{"name":"b","image":"1"}]`),
			b: podSpec(`"containers":[{"name":"a","image":"2"},{"name":"b"}]`),
		},
		"a position names an element as written": {
			gvk: custom, exclude: []string{"/spec/l/1"},
			a: `{"spec":{"l":["a","b","c"]}}`, b: `{"spec":{"l":["a","x","c"]}}`,
		},
		"a set's element by its value": {
			gvk: pod, exclude: []string{"/spec/containers/*/restartPolicyRules/*/exitCodes/values/[=137]"},
			a: podSet(`[1]`), b: podSet(`[137,1]`),
		},
		"numbers are named by their canonical text": {
			gvk: service, exclude: []string{"/spec/ports/[port=80,protocol=TCP]/targetPort"},
			a: `{"spec":{"ports":[{"port":80,"protocol":"TCP","targetPort":1}]}}`,
			b: `{"spec":{"ports":[{"port":8e1,"protocol":"TCP","targetPort":2}]}}`,
		},
		"an empty value names an absent key": {
			gvk: service, exclude: []string{"/spec/ports/[port=80,protocol=]/targetPort"},
			a: `{"spec":{"ports":[{"port":80,"targetPort":1}]}}`, b: `{"spec":{"ports":[{"port":80,"targetPort":2}]}}`,
		},
		"a path that matches nothing changes nothing": {
			gvk: deployment, exclude: []string{"/spec/nosuch/x", "/nosuch"}, a: `{"spec":{}}`, b: `{"spec":{}}`,
		},
		"an empty map was there before and stays": {
			gvk: custom, exclude: []string{"/spec/m/x"}, differ: true, a: `{"spec":{}}`, b: `{"spec":{"m":{}}}`,
		},
		"everything may be excluded": {gvk: custom, exclude: []string{""}, a: `{"spec":{}}`, b: `{"spec":{"a":1},"data":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := bodyHash(t, tc.a, tc.gvk, tc.exclude...), bodyHash(t, tc.b, tc.gvk, tc.exclude...)
			if (a != b) != tc.differ {
				t.Errorf("hashes are %s and %s, want different: %v", a, b, tc.differ)
			}
		})
	}
}

func TestExcludingMakesTheHashOfTheRest(t *testing.T) {
	body := podSpec(`"containers":[{"name":"a","image":"1"},{"name":"b"}],"nodeName":"n"`)
	without := podSpec(`"containers":[{"name":"b"}]`)
	got := bodyHash(t, body, deployment, "/spec/template/spec/nodeName", "/spec/template/spec/containers/[name=a]")
	if want := bodyHash(t, without, deployment); got != want {
		t.Errorf("guarded hash is %s, want %s of the body without the paths", got, want)
	}
}

func TestStampingDoesNotChangeTheHash(t *testing.T) {
	body := `{"metadata":{"annotations":{"a":"b"}},"spec":{"replicas":1}}`
	stamped := strings.Replace(body, `"a":"b"`, `"a":"b","plumbline.dev/spec-hash":"pl1:x"`, 1)
	if a, b := bodyHash(t, body, deployment), bodyHash(t, stamped, deployment); a != b {
		t.Errorf("hash changed from %s to %s by a stamp", a, b)
	}
}
