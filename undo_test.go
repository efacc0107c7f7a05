package strictarp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/strictarp/strictarp"
)

func TestUndoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := strictarp.UndoFile(filepath.Join(dir, "undo.json"))
	_, err := f.Load()
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, text := range []string{"first", "second"} {
		require.NoError(t, f.Save([]byte(text)))
		data, err := f.Load()
		require.NoError(t, err)
		assert.Equal(t, text, string(data))
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left beside it")
	if runtime.GOOS != "windows" {
		info, err := os.Stat(string(f))
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	}
	missing := strictarp.UndoFile(filepath.Join(dir, "missing", "undo.json"))
	require.ErrorIs(t, missing.Save(nil), fs.ErrNotExist)
	folder := strictarp.UndoFile(dir)
	require.Error(t, folder.Save([]byte("x")), "a folder is not replaced")
	entries, err = os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	for _, e := range entries {
		assert.False(t, strings.HasSuffix(e.Name(), ".tmp"), e.Name())
	}
}

// What is in the file at each moment is what takes back all that was changed
// until then.
func TestUndoFileIsAheadOfTheChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, store := newFakeSystem(cure().Steps...), &undoMemory{}
		var steps []int
		sys.before = func(moment string, s strictarp.Step) error {
			if moment == "do" {
				undo, err := store.plan()
				require.NoError(t, err)
				steps = append(steps, len(undo.Steps))
			}
			return nil
		}
		_, err := strictarp.Apply(t.Context(), cure(), strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, Undo: store, Host: "admin"})
		require.NoError(t, err)
		assert.Equal(t, []int{1, 2, 3, 4, 4}, steps)

		var file struct {
			About string `json:"about"`
			Host  string `json:"host"`
			At    string `json:"at"`
			Steps []struct {
				Object, From, To, State string
			} `json:"steps"`
		}
		require.NoError(t, json.Unmarshal(store.data, &file))
		assert.Contains(t, file.About, "takes back")
		assert.Equal(t, "admin", file.Host)
		assert.Equal(t, "2000-01-01T00:00:00Z", file.At)
		require.Len(t, file.Steps, 5)
		assert.Equal(t, "done", file.Steps[4].State)
	})
}

const undoText = `{"version": 1, "steps": [
	{"action": "sysctl", "node": "w1", "object": "net/ipv4/conf/all/arp_ignore", "from": "0", "to": "1", "state": "done"},
	{"action": "sysctl", "node": "w1", "object": "net/ipv4/conf/all/arp_announce", "from": "0", "to": "2", "state": "started", "kept": "1"},
	{"action": "sysctl", "node": "w2", "object": "net/ipv4/conf/all/arp_ignore", "from": "0", "to": "1", "state": "pending"},
	{"action": "sysctl", "node": "w3", "object": "net/ipv4/conf/all/arp_ignore", "from": "0", "to": "1", "state": "already"},
	{"action": "sysctl", "node": "w4", "object": "net/ipv4/conf/all/arp_ignore", "from": "0", "to": "1", "state": "undone"}
], "known": ["kernel-answers-vip|w1|"]}`

func TestReadUndo(t *testing.T) {
	t.Parallel()
	p, err := strictarp.ReadUndo(strings.NewReader(undoText))
	require.NoError(t, err)
	back := announce
	back.From, back.To = "1", "0"
	loose := ignore
	loose.From, loose.To = "1", "0"
	assert.Equal(t, strictarp.Plan{
		Version: strictarp.PlanVersion, Undoes: true, Steps: []strictarp.Step{back, loose}, Known: []strictarp.Key{"kernel-answers-vip|w1|"},
	}, p)

	for name, tt := range map[string]struct {
		text string
		want error
	}{
		"nothing":         {"", fs.ErrInvalid},
		"another version": {`{"version": 2}`, errors.ErrUnsupported},
		"no version":      {`{}`, errors.ErrUnsupported},
		"a state":         {strings.Replace(undoText, "pending", "half", 1), fs.ErrInvalid},
		"a step twice":    {strings.Replace(undoText, "w2", "w1", 1), fs.ErrInvalid},
	} {
		_, err := strictarp.ReadUndo(strings.NewReader(tt.text))
		require.ErrorIs(t, err, tt.want, name)
	}
	_, err = strictarp.ReadUndo(iotest.ErrReader(errBroken))
	require.ErrorIs(t, err, errBroken)
}

func FuzzReadUndo(f *testing.F) {
	f.Add([]byte(undoText))
	f.Add([]byte(`{"version":1,"steps":[{"action":"manual","object":"x","state":"done"},{"action":"rollout-restart","object":"daemonset/kube-proxy","state":"started"}]}`))
	f.Add([]byte(`{"version":1,"steps":[{"action":"neighbour","object":"x","state":"done"},{"action":"label","node":"w1","object":"l","from":"=","to":"absent","state":"done"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := strictarp.ReadUndo(bytes.NewReader(data))
		if err != nil {
			return
		}
		require.True(t, p.Undoes)
		_ = p.Preview()
		sys := newFakeSystem()
		for _, s := range p.Steps {
			sys.values[objectOf(s)] = s.From
		}
		_, err = strictarp.Apply(t.Context(), p, strictarp.ApplyOptions{Executors: strictarp.Executors{sys}, DryRun: true})
		if errors.Is(err, errors.ErrUnsupported) {
			return // a step that the fake does not handle
		}
		require.NoError(t, err, "what was read can be applied")
	})
}
