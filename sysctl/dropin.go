package sysctl

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/strictarp/strictarp/sysctl/internal/glob"
)

// DefaultDropIn is the name of a DropIn that has none: behind those of
// distributions (10 to 50), before what administrators mean to have the last
// word (99).
const DefaultDropIn = "90-strictarp.conf"

// dropInDir is where the administrator's files are, which hide all others.
const dropInDir = "etc/sysctl.d"

// Setting is a key with its value.
type Setting struct {
	Key   Key    `json:"key"`
	Value string `json:"value"`
}

// DropIn is a file of settings in /etc/sysctl.d that a program writes.
type DropIn struct {
	Name     string    `json:"name,omitempty"`    // ending in .conf; "" is DefaultDropIn
	Comment  string    `json:"comment,omitempty"` // for people who find the file, one line or several; "" says what wrote it
	Settings []Setting `json:"settings"`          // written in this order
}

// DropInFor returns a drop-in that makes changes last: their new values.
func DropInFor(changes []Change) DropIn {
	var d DropIn
	for _, c := range changes {
		d.Settings = append(d.Settings, Setting{c.Key, c.To})
	}
	return d
}

func (d DropIn) name() string {
	if d.Name == "" {
		return DefaultDropIn
	}
	return d.Name
}

// Text returns the file's content. It has no date, so that the same settings
// make the same file. The error matches fs.ErrInvalid for a key or value that
// cannot stand in a file.
func (d DropIn) Text() ([]byte, error) {
	comment := d.Comment
	if comment == "" {
		comment = "Written by strictarp: which address the kernel answers ARP for, and speaks as.\nChanges to this file are overwritten; remove it to go back."
	}
	var b bytes.Buffer
	for line := range strings.SplitSeq(comment, "\n") {
		fmt.Fprintln(&b, strings.TrimRight("# "+strings.TrimRight(line, "\r"), " "))
	}
	for _, s := range d.Settings {
		line := s.Key.Dotted() + " = " + s.Value
		if err := s.Key.validate(); err != nil {
			return nil, fmt.Errorf("sysctl: drop-in %s: key %q: %w: %w", d.name(), s.Key, fs.ErrInvalid, err)
		}
		// What is read back has to be what was meant.
		lines, warnings, err := ParsePersisted(strings.NewReader(line))
		if err != nil || len(lines) != 1 || len(warnings) > 0 || lines[0].Pattern != string(s.Key) || lines[0].Value != s.Value || glob.Is(string(s.Key)) {
			return nil, fmt.Errorf("sysctl: drop-in %s: %q cannot stand in a file: %w: %v", d.name(), line, fs.ErrInvalid, warnings)
		}
		fmt.Fprintln(&b, line)
	}
	return b.Bytes(), nil
}

// Change returns what writing the drop-in below a root (/, or the mount of a
// host's) changes, so that the undo, its Inverse, is known before it is applied.
func (d DropIn) Change(root *os.Root) (FileChange, error) {
	if err := checkFileName(d.name()); err != nil {
		return FileChange{}, err
	}
	data, err := d.Text()
	if err != nil {
		return FileChange{}, err
	}
	c := FileChange{Path: dropInDir + "/" + d.name(), To: FileState{Exists: true, Data: data, Mode: 0o644}}
	if c.From, err = readState(root, c.Path); err != nil {
		return FileChange{}, fmt.Errorf("sysctl: read what %s is to replace: %w", c.Path, err)
	}
	return c, nil
}

// Winning returns the drop-in under a name with which its settings win against
// the files there are: its own name if that does, else one that comes later. The
// sources are lines that win all the same, because procps reads
// /etc/sysctl.conf after all others: they have to be changed there.
func (d DropIn) Winning(p Persisted) (DropIn, []Source) {
	last := ""
	var beaten []Source
	for _, f := range p.Files {
		by, sets := f.sets(d.Settings)
		switch {
		case !sets || f.ReadBy == nil || f.Path == "/"+dropInDir+"/"+d.name():
		case f.Path == "/"+sysctlConf:
			beaten = append(beaten, by)
		default:
			last = f.Path[strings.LastIndexByte(f.Path, '/')+1:]
		}
	}
	if d.name() > last {
		return d, beaten
	}
	for _, name := range []string{"99-strictarp.conf", "99-zz-strictarp.conf", "zz-strictarp.conf"} {
		if name > last {
			d.Name = name
			return d, beaten
		}
	}
	d.Name = strings.TrimSuffix(last, ".conf") + "z-strictarp.conf"
	return d, beaten
}

// sets returns the last line of a file that gives one of the settings another
// value by its name; patterns do not matter, for systemd-sysctl, and for procps,
// they leave keys alone that a line names.
func (f File) sets(settings []Setting) (Source, bool) {
	for _, l := range slices.Backward(f.Lines) {
		for _, s := range settings {
			if l.Pattern == string(s.Key) && (l.Exclude || !SameValue(l.Value, s.Value)) {
				return Source{File: f.Path, Line: l.Number, Text: l.Text}, true
			}
		}
	}
	return Source{}, false
}
