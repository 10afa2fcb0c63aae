// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const timedAssertion = "a test fails because real time passed; record the time, and assert the order of events or a count"

// timedOnPurpose are the functions that may bound real time, each with its reason.
var timedOnPurpose = map[string]string{
	"test/integration/xds TestAProxyIsBackSoonAfterTheServerIsReady": "the bound is the promise itself; only mesh-chaos, which sets PLUMBLINE_RETURNS, demands it, and of 99 in 100 returns",
}

// A slow machine breaks such an assertion although the product is right.
func TestNoTestDemandsSpeed(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range testPackages(t) {
		for _, a := range timedAssertions(p.files) {
			place := p.dir + " " + a.function
			seen[place] = true
			if timedOnPurpose[place] == "" {
				t.Errorf("%s, %s: %s", p.fset.Position(a.pos), place, timedAssertion)
			}
		}
	}
	for place := range timedOnPurpose {
		if !seen[place] {
			t.Errorf("%s bounds no time: remove the place from timedOnPurpose", place)
		}
	}
}

func TestTimedAssertionsAreFound(t *testing.T) {
	const measure = "begin := time.Now()\nwork()\n"
	tests := map[string]struct {
		body string
		want []int // lines of the body
	}{
		"a time that is too long":                    {measure + "if time.Since(begin) > limit {\nt.Error(`slow`)\n}", []int{3}},
		"a time with a name":                         {measure + "took := time.Since(begin)\nif took > limit {\nt.Errorf(`took %s`, took)\n}", []int{4}},
		"a time of the condition's statement":        {measure + "if took := time.Since(begin); took >= limit {\nt.Fatal(took)\n}", []int{3}},
		"a bound on the left":                        {measure + "if limit < time.Since(begin) {\nt.Error(`slow`)\n}", []int{3}},
		"an exact time":                              {measure + "if time.Since(begin) != limit {\nt.Error(`another time`)\n}", []int{3}},
		"the difference of two readings":             {measure + "end := time.Now()\nif end.Sub(begin) > limit {\nt.Error(`slow`)\n}", []int{4}},
		"a second condition":                         {measure + "if err != nil || time.Since(begin) > limit {\nt.Error(`slow`)\n}", []int{3}},
		"a bound that does not hold":                 {measure + "if !(time.Since(begin) < limit) {\nt.Error(`slow`)\n}", []int{3}},
		"a name of what holds":                       {measure + "quick := time.Since(begin) < limit\nif !quick {\nt.Error(`slow`)\n}", []int{4}},
		"the slowest of many":                        {measure + "took = append(took, time.Since(begin))\nif slices.Max(took) > limit {\nt.Error(`slow`)\n}", []int{4}},
		"a field":                                    {measure + "w.took = time.Since(begin)\nif w.took > limit {\nt.Error(`slow`)\n}", []int{4}},
		"a function that measures":                   {"took, err := measure()\nif took > limit {\nt.Error(`slow`)\n}", []int{2}},
		"a case of a switch":                         {measure + "switch took := time.Since(begin); {\ncase took > limit:\nt.Error(`slow`)\n}", []int{4}},
		"a measure within a loop":                    {"for range 3 {\n" + measure + "if time.Since(begin) > limit {\nt.Error(`slow`)\n}\n}", []int{4}},
		"a point in time":                            {"if time.Now().After(deadline) {\nt.Error(`late`)\n}", []int{1}},
		"a point in time that is not yet":            {"if !time.Now().Before(deadline) {\nt.Error(`late`)\n}", []int{1}},
		"a function literal that measures":           {"ask := func() (int, time.Duration) {\nbegin := time.Now()\nreturn 1, time.Since(begin)\n}\nn, took := ask()\nif took > limit {\nt.Error(`slow`)\n}", []int{6}},
		"the time until a point":                     {"if left := time.Until(end); left < limit {\nt.Error(`late`)\n}", []int{1}},
		"a reading of another goroutine":             {"begin := time.Now()\nif took := answer.At.Sub(begin); took > limit {\nt.Error(`slow`)\n}", []int{2}},
		"a number of milliseconds":                   {measure + "ms := time.Since(begin).Milliseconds()\nif ms > 50 {\nt.Error(`slow`)\n}", []int{4}},
		"the time until a point is long enough":      {"if time.Until(end) > limit {\nt.Error(`it ends late`)\n}", nil},
		"a check that comes again":                   {measure + "poll.Until(t, limit, `so`, func() error {\nif left := window - time.Since(begin); left > 0 {\nreturn fmt.Errorf(`%s are left`, left)\n}\nreturn nil\n})", nil},
		"another result of a function that measures": {"took, n := measure()\nif n > 3 {\nt.Error(`many`)\n}", nil},
		"a function that starts such a clock":        {"starts(t, func(t *testing.T) {\nbegin := time.Now()\nif time.Since(begin) != 0 {\nt.Error(`slow`)\n}\n})", nil},
		"a time that is too short":                   {measure + "if took := time.Since(begin); took < limit {\nt.Error(`it did not wait`)\n}", nil},
		"a point in time that came":                  {"if time.Now().Before(due) {\nt.Error(`early`)\n}", nil},
		"the order of two times":                     {measure + "took := time.Since(begin)\nif took > other.At.Sub(begin) {\nt.Error(`it came after the other`)\n}", nil},
		"a time that is told":                        {measure + "t.Logf(`it took %s`, time.Since(begin))", nil},
		"a limit of a loop":                          {"begin := time.Now()\nfor !holds() {\nif time.Since(begin) > limit {\nt.Fatal(last)\n}\n}", nil},
		"a deadline of a loop":                       {"for !holds() {\nif time.Now().After(deadline) {\nt.Fatal(last)\n}\n}", nil},
		"a time that decides for how long to go on":  {measure + "if time.Since(begin) > limit {\nreturn nil\n}", nil},
		"a clock of the test's own":                  {"synctest.Test(t, func(t *testing.T) {\nbegin := time.Now()\nif time.Since(begin) != 0 {\nt.Error(`slow`)\n}\n})", nil},
		"a function within such a clock":             {"synctest.Test(t, func(t *testing.T) { inBubble(t) })", nil},
		"times that the product wrote":               {"if step.End.Sub(step.Begin) > limit {\nt.Error(`slow`)\n}", nil},
	}
	const rest = "\nfunc measure() (time.Duration, error) { begin := time.Now(); return time.Since(begin), nil }\n" +
		"func starts(t *testing.T, do func(*testing.T)) { synctest.Test(t, do) }\n" +
		"func inBubble(t *testing.T) { if begin := time.Now(); time.Since(begin) > 0 { t.Error(`slow`) } }\n"
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			used := "synctest.Test(t, func(t *testing.T) { inBubble(t) })\n"
			file, err := parser.ParseFile(fset, "", "package p\nfunc g() {"+used+"}\nfunc f() error {\n"+tc.body+"\n}"+rest, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, a := range timedAssertions([]*ast.File{file}) {
				got = append(got, fset.Position(a.pos).Line-4)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// testPackage are the files of the tests in one folder.
type testPackage struct {
	dir   string
	fset  *token.FileSet
	files []*ast.File
}

func testPackages(t *testing.T) (packages []testPackage) {
	t.Helper()
	for _, name := range testFiles(t) {
		dir := path.Dir(name)
		if len(packages) == 0 || packages[len(packages)-1].dir != dir {
			at := slices.IndexFunc(packages, func(p testPackage) bool { return p.dir == dir })
			if at < 0 {
				packages = append(packages, testPackage{dir: dir, fset: token.NewFileSet()})
				at = len(packages) - 1
			}
			packages[at], packages[len(packages)-1] = packages[len(packages)-1], packages[at]
		}
		p := &packages[len(packages)-1]
		p.files = append(p.files, parseInto(t, p.fset, name))
	}
	return packages
}

// A bucket of a histogram of durations is a time too.
func TestNoTestReadsABucket(t *testing.T) {
	for _, p := range testPackages(t) {
		if p.dir != "test" && !strings.HasPrefix(p.dir, "test/") {
			continue
		}
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				text, is := n.(*ast.BasicLit)
				if is && strings.HasSuffix(text.Value, `_bucket"`) && !strings.HasSuffix(p.fset.Position(n.Pos()).Filename, "_bench_test.go") {
					t.Errorf("%s: %s", p.fset.Position(n.Pos()), timedAssertion)
				}
				return true
			})
		}
	}
}
