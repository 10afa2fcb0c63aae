// SPDX-License-Identifier: Apache-2.0

package runtimeapi

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// said is an answer of HAProxy 2.8.25.
func said(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(text), "\n")
}

func refusedFor(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestAnEntryOfAMapIsRead(t *testing.T) {
	for name, tc := range map[string]struct {
		said, value string
		found       bool
		want        string // in the error; "" when there is none
	}{
		"an entry": {said: `type=str, case=sensitive, found=yes, idx=tree, key="a", value="8:canary:1:stable", type="str"`, value: "8:canary:1:stable", found: true},
		"a value with quotes": {
			said: `type=str, case=sensitive, found=yes, idx=tree, key="a", value="x", type="y", type="str"`, value: `x", type="y`, found: true,
		},
		"an empty value":       {said: `type=str, case=sensitive, found=yes, idx=tree, key="a", value="", type="str"`, found: true},
		"no entry":             {said: "type=str, case=sensitive, found=no"},
		"two maps":             {said: "type=str, found=no\ntype=str, found=no", want: "want one line"},
		"no map":               {said: "Unknown map identifier. Please use #<id> or <file>.", want: "Unknown map identifier"},
		"nothing":              {said: "", want: "reading an entry"},
		"neither found or not": {said: "type=str, case=sensitive, found=maybe", want: "neither found nor missing"},
		"half an answer":       {said: `type=str, case=sensitive, found=yes, idx=tree, key="a", val`, want: "no value"},
	} {
		t.Run(name, func(t *testing.T) {
			value, found, err := ParseMapEntry(tc.said)
			if tc.want != "" {
				refusedFor(t, err, tc.want)
			} else if err != nil || value != tc.value || found != tc.found {
				t.Errorf("read %q (%v, %v)", value, found, err)
			}
		})
	}
}

func TestTheKeysOfAMapAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		said string
		keys []string
		want string
	}{
		"two entries":    {said: "0x55a1c0 plb_shop_web_80@1a2b 7:canary:500:stable\n0x55a1d0 b c d\n", keys: []string{"plb_shop_web_80@1a2b", "b"}},
		"no entry":       {said: "\n"},
		"no map":         {said: "Unknown map identifier. Please use #<id> or <file>.", want: "Unknown map identifier"},
		"half an answer": {said: "0x55a1c0 plb_shop_web_80@1a2b", want: "reading the keys"},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := ParseMapKeys(tc.said)
			if tc.want != "" {
				refusedFor(t, err, tc.want)
			} else if diff := cmp.Diff(tc.keys, keys); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestStatisticsAreRead(t *testing.T) {
	got, err := ParseStats(said(t, "stat.csv"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Stat{
		{Proxy: "plb_shop_web", Server: "split", Answers2xx: 3},
		{Proxy: "plb_shop_web", Server: "BACKEND", Answers2xx: 3},
		{Proxy: "plb_shop_web_80_canary", Server: "s1", Sessions: 2, Answers2xx: 40, Answers4xx: 3, Answers5xx: 1},
		{Proxy: "plb_shop_web_80_canary", Server: "f1"},
		{Proxy: "plb_shop_web_80_canary", Server: "BACKEND", Sessions: 2, Answers1xx: 1, Answers2xx: 40, Answers4xx: 3, Answers5xx: 2, GivenUp: 5},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("statistics (-want +got):\n%s", d)
	}
	if n := want[4].Answered(); n != 46 {
		t.Errorf("%d are answered, want 46", n)
	}
}

func TestStatisticsOfAnotherFormAreRefused(t *testing.T) {
	whole := said(t, "stat.csv")
	for name, tc := range map[string]struct{ said, want string }{
		"nothing":             {"", "reading statistics"},
		"a table without 5xx": {strings.Replace(whole, "hrsp_5xx", "hrsp_fünf", 1), "no column hrsp_5xx"},
		"a row that is cut":   {whole[:strings.LastIndex(whole, "BACKEND")+20], "no column"},
		"a negative number":   {strings.Replace(whole, "BACKEND,0,0,2,", "BACKEND,0,0,-2,", 1), `column scur has "-2"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseStats(tc.said)
			refusedFor(t, err, tc.want)
		})
	}
}

func TestTheProcessIsRead(t *testing.T) {
	got, err := ParseInfo("Name: HAProxy\nVersion: 2.8.25-5cf5d0683\nPid: 14738\nUptime: 0d 0h00m11s\nUptime_sec: 11")
	if want := (Info{PID: 14738, Uptime: 11 * time.Second, Version: "2.8.25"}); err != nil || got != want {
		t.Errorf("read %+v (%v), want %+v", got, err, want)
	}
	for name, tc := range map[string]struct{ said, want string }{
		"no PID":        {"Uptime_sec: 11", "Pid is"},
		"the PID 0":     {"Pid: 0\nUptime_sec: 11", "Pid is"},
		"no time":       {"Pid: 1", "Uptime_sec is"},
		"time that ran": {"Pid: 1\nUptime_sec: -1", "Uptime_sec is"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseInfo(tc.said)
			refusedFor(t, err, tc.want)
		})
	}
}

func TestServersAreRead(t *testing.T) {
	got, err := ParseServers(said(t, "servers-state.txt"))
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort
	want := []Server{
		{"plb_shop_web_80_canary", "s1", at("127.0.0.1:9999"), Draining},
		{"plb_shop_web_80_canary", "s2", at("[fd00::1]:81"), Ready},
		{"plb_shop_web_80_canary", "f1", at("127.0.0.1:1"), Maintenance},
		{"plb_shop_web_80_canary", "s3", at("127.0.0.1:2"), Down},
		{"plb_shop_web", "in", netip.AddrPort{}, Ready},
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
		t.Errorf("servers (-want +got):\n%s", d)
	}
	for name, tc := range map[string]struct{ said, want string }{
		"nothing":             {"", "reading states"},
		"another format":      {"2\n# be_name", "reading states"},
		"a row that is cut":   {"1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_port\n5 web 1 s1", "no column srv_op_state"},
		"a state of letters":  {"1\n# be_name srv_name srv_addr srv_op_state srv_admin_state srv_port\nweb s1 10.0.0.1 up 0 80", `srv_op_state has "up"`},
		"a table of no ports": {"1\n# be_name srv_name srv_addr srv_op_state srv_admin_state\nweb s1 10.0.0.1 2 0", "no column srv_port"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseServers(tc.said)
			refusedFor(t, err, tc.want)
		})
	}
}

func TestWorkersAreRead(t *testing.T) {
	present, old, err := ParseWorkers(said(t, "proc.txt"))
	if d := cmp.Diff([][]int{{15985}, {14738, 14000}}, [][]int{present, old}); d != "" || err != nil {
		t.Errorf("workers (%v; -want +got):\n%s", err, d)
	}
	for name, tc := range map[string]struct{ said, want string }{
		"nothing":          {"", "reading processes"},
		"a PID of letters": {"#<PID> <type>\n# workers\nabc worker 0", `"abc" is no PID`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := ParseWorkers(tc.said)
			refusedFor(t, err, tc.want)
		})
	}
}

func TestAReloadThatFailedIsHeard(t *testing.T) {
	for _, said := range []string{"", "Success=1\n--\n[NOTICE] Loading success."} {
		if err := ParseReload(said); err != nil {
			t.Errorf("%q is refused: %v", said, err)
		}
	}
	refusedFor(t, ParseReload("Success=0\n--\n[ALERT] cannot bind"), ": [ALERT] cannot bind")
	refusedFor(t, ParseReload("nonsense"), "reload")
}

// Whatever a program says: it is refused, or read as something that a program can mean.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"stat.csv", "servers-state.txt", "proc.txt"} {
		f.Add(said(f, name))
	}
	f.Add(`type=str, case=sensitive, found=yes, idx=tree, key="a", value="b", type="str"`)
	f.Add("Pid: 1\nUptime_sec: 1")
	f.Fuzz(func(t *testing.T, text string) {
		if value, found, err := ParseMapEntry(text); (err != nil || !found) && value != "" {
			t.Errorf("no entry has the value %q", value)
		}
		if stats, err := ParseStats(text); err != nil && stats != nil {
			t.Errorf("refused statistics: %v", stats)
		}
		if info, err := ParseInfo(text); err == nil && (info.PID <= 0 || info.Uptime < 0) {
			t.Errorf("process %+v", info)
		}
		if servers, err := ParseServers(text); err != nil && servers != nil {
			t.Errorf("refused servers: %v", servers)
		}
		if strings.HasPrefix(text, "Success=0") && ParseReload(text) == nil {
			t.Errorf("%q is a success", text)
		}
		present, old, err := ParseWorkers(text)
		for _, pid := range append(present, old...) {
			if err != nil || pid <= 0 {
				t.Errorf("worker %d (%v)", pid, err)
			}
		}
	})
}
