// SPDX-License-Identifier: Apache-2.0

package hash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const deploymentJSON = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"app","image":"nginx","args":["a","b"]},{"name":"log","image":"log"}]}}},"status":{"replicas":1}}`

const deploymentYAML = `# a comment
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 3
  template:
    spec:
      containers: # in another order, which means nothing
      - {name: log, image: log}
      - name: app
        image: nginx
        args: [a, b]
`

func pl1Of(t *testing.T, body, kind string) string {
	t.Helper()
	gvk := canon.GVK{}
	if kind != "" {
		gvk = canon.GVK{Group: "apps", Version: "v1", Kind: kind}
	}
	return hashOf(t, body, gvk)
}

func hashOf(t *testing.T, body string, gvk canon.GVK) string {
	t.Helper()
	h, err := canon.HashBody([]byte(body), gvk)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func ddem002Of(t *testing.T, spec string) string {
	t.Helper()
	h, err := canon.HashSpec([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func TestHash_OneLinePerDocument(t *testing.T) {
	web := pl1Of(t, deploymentJSON, "Deployment")
	spec := `{"replicas":3,"template":{"spec":{"containers":[{"name":"app","image":"nginx","args":["a","b"]},{"name":"log","image":"log"}]}}}`
	one := pl1Of(t, `{"spec":{"a":1}}`, "")
	release := `{"apiVersion":"helm.example.org/v2","kind":"HelmRelease","spec":{"values":{"a":null}}}`
	ofRelease := hashOf(t, release, canon.GVK{Group: "helm.example.org", Version: "v2", Kind: "HelmRelease"})
	cases := map[string]struct {
		stdin string
		args  []string
		want  clitest.Answer
	}{
		"JSON":                               {stdin: deploymentJSON, want: clitest.Answer{Stdout: web + "\n"}},
		"YAML hashes like its JSON":          {stdin: deploymentYAML, want: clitest.Answer{Stdout: web + "\n"}},
		"space around JSON means nothing":    {stdin: "\n\t " + deploymentJSON + "\r\n", want: clitest.Answer{Stdout: web + "\n"}},
		"several documents, several lines":   {stdin: deploymentYAML + "---\nspec: {a: 1}\n", want: clitest.Answer{Stdout: web + "\n" + one + "\n"}},
		"empty documents are skipped":        {stdin: "---\n---\n# only a comment\n---\nspec: {a: 1}\n---\n...\n---\n", want: clitest.Answer{Stdout: one + "\n"}},
		"JSON inside a YAML stream":          {stdin: "---\n" + deploymentJSON + "\n--- {\"spec\": {\"a\": 1}}\n", want: clitest.Answer{Stdout: web + "\n" + one + "\n"}},
		"a byte order mark before YAML":      {stdin: "\ufeffspec: {a: 1}\n", want: clitest.Answer{Stdout: one + "\n"}},
		"CRLF":                               {stdin: "spec:\r\n  a: 1\r\n---\r\nspec: {a: 1}\r\n", want: clitest.Answer{Stdout: one + "\n" + one + "\n"}},
		"metadata and status do not count":   {stdin: `{"metadata":{"x":1},"spec":{"a":1},"status":{"y":2}}`, want: clitest.Answer{Stdout: one + "\n"}},
		"the empty object has a hash":        {stdin: `{}`, want: clitest.Answer{Stdout: pl1Of(t, `{}`, "") + "\n"}},
		"an empty object in YAML":            {stdin: "--- {}\n", want: clitest.Answer{Stdout: pl1Of(t, `{}`, "") + "\n"}},
		"an anchor and a merge key":          {stdin: "base: &b {a: 1}\nspec: {<<: *b}\n", want: clitest.Answer{Stdout: pl1Of(t, `{"base":{"a":1},"spec":{"a":1}}`, "") + "\n"}},
		"pl1 of a bare spec":                 {stdin: `{"a":1}`, args: []string{"--bare"}, want: clitest.Answer{Stdout: one + "\n"}},
		"a bare spec may have a status":      {stdin: `{"status":1}`, args: []string{"--bare"}, want: clitest.Answer{Stdout: pl1Of(t, `{"spec":{"status":1}}`, "") + "\n"}},
		"a bare spec in YAML":                {stdin: "a: 1\n", args: []string{"--bare"}, want: clitest.Answer{Stdout: one + "\n"}},
		"pl2 of a custom kind":               {stdin: release, args: []string{"--algorithm", "pl2"}, want: clitest.Answer{Stdout: ofRelease + "\n"}},
		"a custom kind":                      {stdin: release, want: clitest.Answer{Stdout: ofRelease + "\n"}},
		"ddem002 hashes .spec":               {stdin: deploymentJSON, args: []string{"--algorithm", "ddem002"}, want: clitest.Answer{Stdout: ddem002Of(t, spec) + "\n"}},
		"ddem002 of YAML":                    {stdin: deploymentYAML, args: []string{"--algorithm=ddem002"}, want: clitest.Answer{Stdout: ddem002Of(t, spec) + "\n"}},
		"ddem002 of a bare spec":             {stdin: spec, args: []string{"--algorithm", "ddem002", "--bare"}, want: clitest.Answer{Stdout: ddem002Of(t, spec) + "\n"}},
		"ddem002 of half a surrogate pair":   {stdin: `{"spec":{"s":"\ud83d"}}`, args: []string{"--algorithm", "ddem002"}, want: clitest.Answer{Stdout: ddem002Of(t, `{"s":"\ufffd"}`) + "\n"}},
		"ddem002 of the empty bare spec":     {stdin: "{}", args: []string{"--algorithm", "ddem002", "--bare"}, want: clitest.Answer{Stdout: ddem002Of(t, "{}") + "\n"}},
		"ddem002 of a null spec":             {stdin: `{"spec":null}`, args: []string{"--algorithm", "ddem002"}, want: clitest.Answer{Stdout: ddem002Of(t, "{}") + "\n", Stderr: "Warning: standard input: document 1 has no .spec; ddem002 hashes it as an empty spec\n"}},
		"wide adds kind, namespace and name": {stdin: deploymentYAML + "---\nspec: {a: 1}\n", args: []string{"-o", "wide"}, want: clitest.Answer{Stdout: web + "  Deployment/shop/web\n" + one + "  -/-/-\n"}},
		"a name cannot add lines":            {stdin: `{"kind":"A\nB","metadata":{"name":"x\u001b[2J"}}`, args: []string{"-o", "wide"}, want: clitest.Answer{Stdout: pl1Of(t, `{}`, "") + "  A\ufffdB/-/x\ufffd[2J\n"}},
		"a List is one document":             {stdin: `{"kind":"List","items":[]}`, want: clitest.Answer{Stdout: pl1Of(t, `{"items":[]}`, "") + "\n", Stderr: "Warning: standard input: document 1 is a List; it is hashed as one document, not item by item\n"}},
		"a Secret's hash is not for show":    {stdin: `{"kind":"Secret","data":{}}`, want: clitest.Answer{Stdout: pl1Of(t, `{"data":{}}`, "") + "\n", Stderr: "Warning: standard input: document 1 is a Secret; short values can be guessed from its hash, so do not publish it\n"}},
		"JSON output": {stdin: `{"kind":"K","spec":{"a":1}}`, args: []string{"-o", "json"}, want: clitest.Answer{Stdout: fmt.Sprintf(`{
    "apiVersion": "cli.plumbline.dev/v1alpha1",
    "kind": "HashList",
    "items": [
        {
            "hash": "%s",
            "file": "standard input",
            "document": 1,
            "kind": "K"
        }
    ]
}
`, one)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.RunOffline(t, verbs, tc.stdin, append([]string{"hash", "-f", "-"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHash_YAMLScalarsHashLikeJSON has both spellings of each value.
func TestHash_YAMLScalarsHashLikeJSON(t *testing.T) {
	cases := map[string]string{
		"1": "1", "-0": "0", "+1": "1", "1.0": "1", "1e0": "1.0", "0x1F": "31", "0o17": "15", "017": "15", "0b11": "3", "1_000": "1000",
		"9007199254740993": "9007199254740993", "18446744073709551615": "18446744073709551615", "123456789012345678901234567890": "123456789012345678901234567890",
		"0.1234567890123456789": "0.1234567890123456789", ".5": "0.5", "1.": "1", "-.5e+3": "-500", "1e400": "1e400", "09": "9",
		"true": "true", "True": "true", "yes": "true", "on": "true", "y": "true", "no": "false", "Off": "false", "N": "false",
		"null": "null", "~": "null", "": "null",
		"2001-01-01": `"2001-01-01"`, "2001-01-01T10:00:00Z": `"2001-01-01T10:00:00Z"`, "1:30": `"1:30"`, "1.2.3": `"1.2.3"`, "0x": `"0x"`, "_1": `"_1"`,
		`"1"`: `"1"`, `'true'`: `"true"`, `"null"`: `"null"`, `"\x41\u00e9"`: `"Aé"`, "!!str 1": `"1"`, `!!int "7"`: "7", "!!float 1": "1", "nginx:1.27": `"nginx:1.27"`,
		"[1, yes, {a: ~}]": `[1,true,{"a":null}]`, "|\n    a\n    b\n": `"a\nb\n"`, ">-\n    a\n    b\n": `"a b"`, "<html>&": `"<html>&"`,
	}
	for spelling, want := range cases {
		got := clitest.RunOffline(t, verbs, "spec:\n  k: "+spelling+"\n", "hash", "-f", "-")
		like := clitest.RunOffline(t, verbs, `{"spec":{"k":`+want+`}}`, "hash", "-f", "-")
		if got.Code != 0 || got != like {
			t.Errorf("%q gave %+v, its JSON %s gave %+v", spelling, got, want, like)
		}
	}
}

func TestHash_BadInputNamesFileAndOffset(t *testing.T) {
	deep := strings.Repeat
	ddem := []string{"--algorithm", "ddem002"}
	cases := map[string]struct {
		input string
		args  []string
		want  string // after the file's name
	}{
		"empty":                               {"", nil, "offset 0: the input holds no document"},
		"white space":                         {" \n\n", nil, "offset 3: the input holds no document"},
		"comments only":                       {"# a\n# b\n", nil, "offset 8: the input holds no document"},
		"separators only":                     {"---\n---\n", nil, "offset 8: the input holds no document"},
		"an explicit null":                    {"null\n", nil, "offset 0: the document is not an object"},
		"a tilde":                             {"---\n~\n", nil, "offset 4: the document is not an object"},
		"an array":                            {"[{}]", nil, "offset 0: the document is not an object"},
		"a string":                            {`"{}"`, nil, "offset 0: the document is not an object"},
		"a number":                            {"12\n", nil, "offset 0: the document is not an object"},
		"a list of objects in YAML":           {"a: 1\n---\n- a: 1\n", nil, "offset 9: the document is not an object"},
		"pl1 of a custom kind":                {`{"apiVersion":"example.org/v1","kind":"Widget"}`, []string{"--algorithm", "pl1"}, `offset 0: kind "Widget" is hashed by pl2, not by pl1`},
		"pl2 without a kind":                  {`{}`, []string{"--algorithm", "pl2"}, `offset 0: kind "none" is hashed by pl1, not by pl2`},
		"a bare list":                         {"- 1\n", []string{"--bare"}, "offset 0: the document is not an object"},
		"JSON, duplicate key":                 {`{"a":1,"b":{"c":1,"c":2}}`, nil, `offset 18: duplicate key "c"`},
		"JSON, duplicate key by escape":       {`{"a":1,"\u0061":2}`, nil, `offset 7: duplicate key "a"`},
		"JSON, duplicate in metadata":         {`{"metadata":{"a":1,"a":2}}`, nil, `offset 19: duplicate key "a"`},
		"JSON, duplicate for ddem002":         {`{"spec":{"a":1,"a":1}}`, ddem, `offset 15: duplicate key "a"`},
		"JSON, duplicate outside the spec":    {`{"spec":{},"x":{"a":1,"a":1}}`, ddem, `offset 22: duplicate key "a"`},
		"JSON, bare duplicate":                {`{"a":1,"a":1}`, []string{"--bare"}, `offset 7: duplicate key "a"`},
		"JSON, trailing object":               {`{} {}`, nil, "offset 3: data after the object"},
		"JSON, trailing text":                 {`{"a":1}x`, nil, "offset 7: data after the object"},
		"JSON, trailing document":             {"{}\n---\n{}\n", nil, "offset 3: data after the object"},
		"JSON, trailing comment":              {"{}\n# c\n", nil, "offset 3: data after the object"},
		"JSON, trailing NUL":                  {"{}\x00", nil, "offset 2: data after the object"},
		"JSON does not fall back to YAML":     {`{a: 1}`, nil, "offset 1: unexpected byte"},
		"JSON, indented, neither":             {"  {a: 1}", nil, "offset 3: unexpected byte"},
		"JSON, trailing comma":                {`{"a":1,}`, nil, "offset 7: unexpected byte"},
		"JSON, single quotes":                 {`{'a':1}`, nil, "offset 1: unexpected byte"},
		"JSON, comment":                       {"{//c\n}", nil, "offset 1: unexpected byte"},
		"JSON, cut":                           {`{"a":`, nil, "offset 5: unexpected end of input"},
		"JSON, cut in a string":               {`{"a":"b`, nil, "offset 7: unexpected end of input"},
		"JSON, NaN":                           {`{"a":NaN}`, nil, "offset 5: unexpected byte"},
		"JSON, leading zero":                  {`{"a":01}`, nil, "offset 6: unexpected byte"},
		"JSON, plus sign":                     {`{"a":+1}`, nil, "offset 5: unexpected byte"},
		"JSON, raw control character":         {"{\"a\":\"\x01\"}", nil, "offset 6: unescaped control character in string"},
		"JSON, bad escape":                    {`{"a":"\x41"}`, nil, "offset 6: invalid escape in string"},
		"JSON, lone surrogate":                {`{"a":"\ud83d"}`, nil, "offset 6: lone surrogate in string"},
		"JSON, invalid UTF-8":                 {"{\"a\":\"\xff\"}", nil, "offset 6: invalid UTF-8 in string"},
		"JSON after a byte order mark":        {"\ufeff{}", nil, "offset 0: not a JSON object"},
		"JSON, too deep":                      {deep(`{"a":`, 300) + "1" + deep("}", 300), nil, "offset 1280: nesting deeper than 256"},
		"JSON, a number without end":          {`{"a":1e9999999999}`, nil, "offset 5: exponent outside ±999999999"},
		"ddem002, beyond float64":             {`{"spec":{"a":1,"b":1e400}}`, ddem, "offset 19: the number 1e400 is beyond float64, which ddem002 uses"},
		"ddem002, beyond float64 in YAML":     {"spec:\n  a: 1\n  b: 1e400\n", ddem, "offset 18: the number 1e400 is beyond float64, which ddem002 uses"},
		"ddem002, a spec that is a list":      {`{"spec":[]}`, ddem, "offset 0: .spec is not an object, and ddem002 hashes .spec alone"},
		"ddem002, a spec that is a string":    {"spec: {}\n---\nspec: x\n", ddem, "offset 13: .spec is not an object, and ddem002 hashes .spec alone"},
		"YAML, duplicate key":                 {"a: 1\nb: 2\na: 3\n", nil, `offset 10: duplicate key "a"`},
		"YAML, nested duplicate key":          {"é: ü\nspec:\n  x: 1\n  x: 2\n", nil, `offset 22: duplicate key "x"`},
		"YAML, duplicate by another spelling": {"a:\n  1: x\n  \"1\": y\n", nil, `offset 12: duplicate key "1"`},
		"YAML, duplicate true":                {"y: 1\ntrue: 2\n", nil, `offset 5: duplicate key "true"`},
		"YAML, duplicate in flow":             {"x: {a: 1, a: 2}\n", nil, `offset 10: duplicate key "a"`},
		"YAML, duplicate in JSON of a stream": {"---\n{\"a\":1,\"a\":2}\n", nil, `offset 11: duplicate key "a"`},
		"YAML, duplicate merge key":           {"a: &a {x: 1}\n<<: *a\n<<: *a\n", nil, `offset 20: duplicate key "<<"`},
		"YAML, merge below its own key":       {"b: &b {x: 1}\nc: {x: 3, <<: *b}\n", nil, `offset 7: "x" is merged in below a key of the same name, which not all readers take alike; put the merge key first`},
		"YAML, second document":               {"a: 1\n---\nb: 1\nb: 2\n", nil, `offset 14: duplicate key "b"`},
		"YAML, duplicate after a mark":        {"\ufeffa: 1\na: 2\n", nil, `offset 8: duplicate key "a"`},
		"YAML, duplicate in CRLF":             {"a: 1\r\na: 2\r\n", nil, `offset 6: duplicate key "a"`},
		"YAML, duplicate for ddem002":         {"spec: {}\nx: 1\nx: 1\n", ddem, `offset 14: duplicate key "x"`},
		"YAML, unclosed list":                 {"a: [1, 2\nb: 3\n", nil, "offset 13: did not find expected ',' or ']'"},
		"YAML, tab":                           {"a:\n\tb: 1\n", nil, "offset 6: found character that cannot start any token"},
		"YAML, control character":             {"a: \x01\n", nil, "offset 3: control characters are not allowed"},
		"YAML, invalid UTF-8":                 {"a: b\nc: \xff\n", nil, "offset 8: invalid UTF-8"},
		"UTF-16":                              {"\xff\xfea\x00", nil, "offset 0: invalid UTF-8"},
		"YAML, data after the document":       {"a: 1\n...\nb: 2\n", nil, "did not find expected <document start>"},
		"YAML, unknown anchor":                {"a: *x\n", nil, "unknown anchor 'x' referenced"},
		"YAML, an alias of itself":            {"a: &a {b: *a}\n", nil, "nesting deeper than 256"},
		"YAML, a merge of itself":             {"a: &a {<<: *a}\n", nil, "nesting deeper than 256"},
		"YAML, too deep":                      {"a: " + deep("[", 300) + deep("]", 300), nil, "offset 258: nesting deeper than 256"},
		"YAML, infinity":                      {"a: .inf\n", nil, "offset 3: .inf has no JSON form"},
		"YAML, not a number":                  {"a: [.NaN]\n", nil, "offset 4: .NaN has no JSON form"},
		"YAML, a list as key":                 {"? [a]\n: 1\n", nil, "offset 2: a key must be a scalar"},
		"YAML, null as key":                   {"~: 1\n", nil, "offset 0: a key must be a string"},
		"YAML, binary":                        {"a: !!binary aGk=\n", nil, `offset 3: "aGk=" cannot be read as !!binary`},
		"YAML, a set":                         {"a: !!set {x}\n", nil, "offset 3: the tag !!set has no JSON form"},
		"YAML, a tag of somebody's own":       {"a: !mine [1]\n", nil, "offset 3: the tag !mine has no JSON form"},
		"YAML, a word as integer":             {"a: !!int x\n", nil, `offset 3: "x" cannot be read as !!int`},
		"YAML, merging a scalar":              {"<<: 1\n", nil, "offset 4: a merge key needs a mapping or a list of mappings"},
		"YAML, a number without end":          {"spec:\n  a: 1\n  b: 1e9999999999\n", nil, "offset 18: exponent outside ±999999999"},
		"YAML 1.2 directive":                  {"%YAML 1.2\n---\na: 1\n", nil, "found incompatible YAML document"},
	}
	dir := t.TempDir()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "bad.yaml")
			if err := os.WriteFile(file, []byte(tc.input), 0o600); err != nil {
				t.Fatal(err)
			}
			got := clitest.RunOffline(t, verbs, "", append([]string{"hash", "-f", file}, tc.args...)...)
			if got.Code != 1 || got.Stdout != "" || !strings.HasPrefix(got.Stderr, "error: "+file+": offset ") || !strings.HasSuffix(got.Stderr, tc.want+"\n") || strings.Count(got.Stderr, "\n") != 1 {
				t.Errorf("%.60q gave %+v, want %q", tc.input, got, tc.want)
			}
			fromStdin := clitest.RunOffline(t, verbs, tc.input, append([]string{"hash", "-f", "-"}, tc.args...)...)
			want := clitest.Answer{Code: 1, Stderr: strings.Replace(got.Stderr, file, "standard input", 1)}
			if diff := cmp.Diff(want, fromStdin); diff != "" {
				t.Errorf("from standard input (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHash_AliasesThatExplodeAreRefused(t *testing.T) {
	var bomb, silent strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	silent.WriteString("a0: &a0 {}\n")
	for i := range 12 {
		aliases := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", ")
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i+1, i+1, aliases)
		fmt.Fprintf(&silent, "a%d: &a%d {<<: [%s]}\n", i+1, i+1, aliases)
	}
	for name, input := range map[string]string{"lists": bomb.String(), "merges that add nothing": silent.String()} {
		got := clitest.RunOffline(t, verbs, input, "hash", "-f", "-")
		if got.Code != 1 || !strings.Contains(got.Stderr, ": more than 1048576 values") {
			t.Errorf("%s gave %+v", name, got)
		}
	}
	long := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
	if got := clitest.RunOffline(t, verbs, long, "hash", "-f", "-"); got.Code != 1 || !strings.Contains(got.Stderr, "bytes as JSON") {
		t.Errorf("long strings gave %d, %.200s", got.Code, got.Stderr)
	}
}

func TestHash_BodyOfTheLargestSizePasses(t *testing.T) {
	fill := func(size int) string {
		const head, tail = `{"spec":{"a":"`, `"}}`
		return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
	}
	if got := clitest.RunOffline(t, verbs, fill(canon.MaxBodyBytes), "hash", "-f", "-"); got.Code != 0 {
		t.Errorf("8 MiB gave %+v", got)
	}
	got := clitest.RunOffline(t, verbs, fill(canon.MaxBodyBytes+1), "hash", "-f", "-")
	if want := "error: standard input: offset 8388608: input of more than 8388608 bytes\n"; got.Stderr != want {
		t.Errorf("one byte more gave %q, want %q", got.Stderr, want)
	}
}

func TestHash_Files(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, bad := write("good.yaml", "spec: {a: 1}\n"), write("bad.yaml", "spec: 1\nspec: 2\n")
	one := pl1Of(t, `{"spec":{"a":1}}`, "") + "\n"

	cases := map[string]struct {
		args []string
		want clitest.Answer
	}{
		"one file":                          {[]string{"-f", good}, clitest.Answer{Stdout: one}},
		"several files, in order":           {[]string{"-f", good, "-f", "-", "--filename", good}, clitest.Answer{Stdout: one + one + one}},
		"all or nothing":                    {[]string{"-f", good, "-f", bad}, clitest.Answer{Code: 1, Stderr: "error: " + bad + ": offset 8: duplicate key \"spec\"\n"}},
		"a directory":                       {[]string{"-f", dir}, clitest.Answer{Code: 1, Stderr: "error: " + dir + " is a directory: -f takes a file, or - for standard input\n"}},
		"a file that is not there":          {[]string{"-f", dir + "/none"}, clitest.Answer{Code: 1, Stderr: "error: open " + dir + "/none: no such file or directory\n"}},
		"an empty file name":                {[]string{"-f", ""}, clitest.Answer{Code: 1, Stderr: "error: open : no such file or directory\n"}},
		"a file name that looks like a URL": {[]string{"-f", "https://example.org/x.yaml"}, clitest.Answer{Code: 1, Stderr: "error: open https://example.org/x.yaml: no such file or directory\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clitest.RunOffline(t, verbs, "spec: {a: 1}", append([]string{"hash"}, tc.args...)...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestJudgeStamp(t *testing.T) {
	live := canon.Hash(pl1Of(t, `{"spec":{"a":1}}`, ""))
	cases := map[string]struct{ stamp, want string }{
		"no stamp":              {"", "no stamp"},
		"fresh":                 {string(live), "equals the live hash"},
		"older than the object": {pl1Of(t, `{"spec":{"a":2}}`, ""), "differs from the object"},
		"another algorithm":     {ddem002Of(t, `{"a":1}`), "not a pl1 hash"},
		"forged":                {"trust me", "not a pl1 hash"},
	}
	for name, tc := range cases {
		if got := judgeStamp(tc.stamp, live); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q does not say %q", name, got, tc.want)
		}
	}
}
