// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/plumbline-dev/plumbline/hack/cluster/internal/address"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/builder"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newManager(t *testing.T) Manager {
	t.Helper()
	// Not t.TempDir: with a long test name its path is too long for Unix sockets.
	folder, err := os.MkdirTemp("/tmp", "plc") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return Manager{
		State: filepath.Join(folder, "clusters"), Progress: io.Discard,
		Builder: builder.Builder{Components: "../../components", Cache: t.TempDir(), Progress: io.Discard},
		Preflight: func(context.Context, int) error {
			return errPreflight
		},
	}
}

var errPreflight = errors.New("machine refused")

// place writes the state of a cluster as bring-up does, with the first process
// played by a lock that this test holds while alive is true.
func place(t *testing.T, m Manager, name string, alive, ready bool) Record {
	t.Helper()
	record := Record{
		Cluster: plan.Cluster{
			Options: plan.Options{Name: name}, Network: address.Network{Index: address.Blocks - 1},
			Cgroup: plan.CgroupPrefix + name + "-000000", Root: m.layout(name).Root,
		},
		Pid: 1 << 30, Started: time.Unix(1, 0).UTC(), // beyond any process number
	}
	for _, folder := range record.Layout().Folders() {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := record.write(); err != nil {
		t.Fatal(err)
	}
	if ready {
		if err := os.WriteFile(record.Layout().Ready(), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if alive {
		lock, err := os.Create(record.Layout().Alive())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() })
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			t.Fatal(err)
		}
	}
	return record
}

func TestIntact(t *testing.T) {
	cases := map[string]struct {
		alive, ready bool
		exit         string // status of a daemon that ended
		want         string // reason; "" when intact
	}{
		"a cluster that runs":                        {true, true, "", ""},
		"a cluster whose first process has ended":    {false, true, "", "first process has ended"},
		"a cluster whose bring-up was cut off":       {true, false, "", "bring-up did not finish"},
		"a cluster that has lost a daemon":           {true, true, "killed by killed\n", "kube-scheduler killed by killed"},
		"the end of everything comes before details": {false, false, "exited with status 1", "first process has ended"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record := place(t, newManager(t), "c", tc.alive, tc.ready)
			if tc.exit != "" {
				log := []byte(strings.Repeat("old\n", 100) + "the last words\n")
				err := errors.Join(
					os.WriteFile(filepath.Join(record.Layout().Exits(), plan.Scheduler), []byte(tc.exit), 0o644),
					os.WriteFile(record.Layout().Log(plan.Scheduler), log, 0o644),
				)
				if err != nil {
					t.Fatal(err)
				}
			}
			err := intact(record)
			if tc.want == "" {
				if err != nil {
					t.Errorf("intact = %v", err)
				}
				return
			}
			var gone dead
			if !errors.As(err, &gone) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("intact = %v, want it dead: %q", err, tc.want)
			}
			if tc.alive && tc.exit != "" && !strings.Contains(err.Error(), "the last words") {
				t.Errorf("the reason does not show the log: %v", err)
			}
		})
	}
}

func TestADeadClusterIsNotWaitedFor(t *testing.T) {
	m := newManager(t)
	record := place(t, m, "c", false, true)
	// With an hour of patience, only the verdict can end the wait.
	if err := m.healthyWithin(t.Context(), record, time.Hour); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("healthyWithin = %v", err)
	}
}

func TestReuse(t *testing.T) {
	m := newManager(t)
	wanted := plan.Cluster{Options: plan.Options{Name: "c"}, Root: m.layout("c").Root}
	if _, keep, err := m.reuse(t.Context(), wanted, false); keep || err != nil {
		t.Errorf("nothing there: keep %v, %v", keep, err)
	}
	place(t, m, "c", false, true)
	var progress bytes.Buffer
	m.Progress = &progress
	if _, keep, err := m.reuse(t.Context(), wanted, false); keep || err != nil || !strings.Contains(progress.String(), "is replaced: its first process has ended") {
		t.Errorf("a dead cluster: keep %v, %v, said %q", keep, err, progress.String())
	}
	if err := os.WriteFile(m.layout("c").Record(), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, keep, err := m.reuse(t.Context(), wanted, false); keep || err != nil {
		t.Errorf("a damaged record: keep %v, %v", keep, err)
	}
}

func TestDiffers(t *testing.T) {
	base := plan.Cluster{Options: plan.Options{Name: "c", Nodes: 1}, Programs: map[string]string{"kubernetes": "/cache/k-v1"}}
	cases := map[string]struct {
		change func(*plan.Cluster)
		want   string
	}{
		"other addresses are no difference": {func(c *plan.Cluster) { c.Network.Index, c.Cgroup, c.Root = 3, "x", "/y" }, ""},
		"no arguments in another spelling":  {func(c *plan.Cluster) { c.Options.APIServerArgs = []string{} }, ""},
		"audit":                             {func(c *plan.Cluster) { c.Options.Audit = true }, `"audit":true`},
		"an argument":                       {func(c *plan.Cluster) { c.Options.APIServerArgs = []string{"--v=4"} }, "--v=4"},
		"nodes":                             {func(c *plan.Cluster) { c.Options.Nodes = 0 }, `"nodes":0`},
		"another version":                   {func(c *plan.Cluster) { c.Programs = map[string]string{"kubernetes": "/cache/k-v2"} }, "k-v2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changed := base
			tc.change(&changed)
			got := differs(base, changed)
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) || tc.want != "" && got == "" {
				t.Errorf("differs = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestUpRefusesBeforeItTouchesAnything(t *testing.T) {
	cases := map[string]struct {
		options plan.Options
		state   string
		want    string
	}{
		"a bad name":                     {plan.Options{Name: "Bad Name"}, "", "cluster name"},
		"two nodes":                      {plan.Options{Name: "c", Nodes: 2}, "", "2 nodes"},
		"minus one node":                 {plan.Options{Name: "c", Nodes: -1}, "", "-1 nodes"},
		"a state folder that is covered": {plan.Options{Name: "c"}, "/run/plumbline-test", "choose another --state"},
		"a machine that is not capable":  {plan.Options{Name: "c", Nodes: 1}, "", errPreflight.Error()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newManager(t)
			if tc.state != "" {
				m.State = tc.state
			}
			_, err := m.Up(t.Context(), tc.options, false)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Up = %v, want %q", err, tc.want)
			}
			if entries, err := os.ReadDir(m.State); err == nil && len(entries) > 0 {
				t.Errorf("left %v", entries)
			}
		})
	}
}

func TestDownOfWhatIsNotRunning(t *testing.T) {
	cases := map[string]func(*testing.T, Manager){
		"a cluster that never was":    func(*testing.T, Manager) {},
		"a cluster that has died":     func(t *testing.T, m Manager) { place(t, m, "c", false, true) },
		"a cluster that was cut off":  func(t *testing.T, m Manager) { place(t, m, "c", false, false) },
		"a folder without a record":   func(t *testing.T, m Manager) { mkdir(t, filepath.Join(m.State, "c", "log")) },
		"a folder with half a record": func(t *testing.T, m Manager) { damage(t, place(t, m, "c", false, true)) },
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			m := newManager(t)
			prepare(t, m)
			if err := m.Down(t.Context(), "c"); err != nil {
				t.Fatal(err)
			}
			if entries, err := os.ReadDir(m.State); err != nil || len(entries) > 0 {
				t.Errorf("left %v (%v)", entries, err)
			}
		})
	}
}

func TestDownOfALivingClusterWithADamagedRecordGuessesNothing(t *testing.T) {
	m := newManager(t)
	damage(t, place(t, m, "c", true, true))
	if err := m.Down(t.Context(), "c"); err == nil {
		t.Error("a living cluster's state was removed")
	}
	if _, err := os.Stat(m.layout("c").Record()); err != nil {
		t.Errorf("the record is gone: %v", err)
	}
}

func mkdir(t *testing.T, folder string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
}

func damage(t *testing.T, record Record) {
	t.Helper()
	if err := os.WriteFile(record.Layout().Record(), []byte(`{"pid":`), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestList(t *testing.T) {
	m := newManager(t)
	if all, err := m.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("without a state folder: %v, %v", all, err)
	}
	place(t, m, "dead", false, true)
	damage(t, place(t, m, "damaged", false, true))
	mkdir(t, filepath.Join(m.State, "Not-A-Cluster"))
	all, err := m.List(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("List = %v, %v; want two", all, err)
	}
	if all[0].Name != "damaged" || !strings.Contains(all[0].Problem, "reading the record") {
		t.Errorf("first is %+v", all[0])
	}
	if all[1].Name != "dead" || all[1].Problem != "its first process has ended" || all[1].Server != "https://10.239.255.2:6443" {
		t.Errorf("second is %+v", all[1])
	}
}

func TestCommandsOnNoCluster(t *testing.T) {
	m := newManager(t)
	if _, err := m.Read("nobody"); !errors.Is(err, ErrNoCluster) {
		t.Errorf("Read = %v", err)
	}
	if err := m.Load(t.Context(), "nobody", nil); !errors.Is(err, ErrNoCluster) {
		t.Errorf("Load = %v", err)
	}
	if _, _, err := m.EnterArgs("nobody", nil); !errors.Is(err, ErrNoCluster) {
		t.Errorf("EnterArgs = %v", err)
	}
	place(t, m, "dead", false, true)
	if _, _, err := m.EnterArgs("dead", []string{"true"}); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("EnterArgs of a dead cluster = %v", err)
	}
	if err := m.Load(t.Context(), "dead", []string{"x"}); err == nil || !strings.Contains(err.Error(), "no node") {
		t.Errorf("Load into a cluster without a node = %v", err)
	}
}

func TestLastLines(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want string
	}{
		"fewer lines than asked for": {"a\nb\n", "  a\n  b"},
		"more lines than asked for":  {"a\nb\nc\nd\n", "  b\n  c\n  d"},
		"no end of line":             {"a\nb", "  a\n  b"},
		"nothing":                    {"", "  "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lastLines(tc.text, 3); got != tc.want {
				t.Errorf("lastLines = %q, want %q", got, tc.want)
			}
		})
	}
}
