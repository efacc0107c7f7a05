package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/strictarp/strictarp/internal/vmtest/wire"
)

// Main is the whole of the machine's init program. It returns only in case of
// an error, or in the second process.
func Main() error {
	if os.Getpid() == 1 {
		return first()
	}
	reports, err := os.OpenFile(wire.ReportDevice, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open the port for reports: %w", err)
	}
	err = work(reports)
	if err != nil {
		err = errors.Join(err, wire.Send(reports, wire.Event{Kind: wire.Fatal, Text: err.Error()}))
	}
	// Closing waits until the last byte is out.
	return errors.Join(err, reports.Close())
}

// first is process 1.
func first() error {
	defer unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	// Devices first: the second process reports by one.
	if err := mountAll(); err != nil {
		fmt.Println("vmtest:", err)
		return err
	}
	worker, err := os.StartProcess("/proc/self/exe", []string{"worker"}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		fmt.Println("vmtest: start the second process:", err)
		return err
	}
	for {
		pid, err := unix.Wait4(-1, nil, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) || pid == worker.Pid {
			return err
		}
	}
}

// work sets the machine up and runs the plan.
func work(reports io.Writer) error {
	text, err := os.ReadFile(wire.PlanFile)
	if err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	var plan wire.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	if err := loadModules(plan.Modules); err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("ask for the kernel's release: %w", err)
	}
	if err := wire.Send(reports, wire.Event{Kind: wire.Ready, Text: unix.ByteSliceToString(name.Release[:])}); err != nil {
		return err
	}
	if err := RunPackages(context.Background(), plan, reports); err != nil {
		return err
	}
	return wire.Send(reports, wire.Event{Kind: wire.Done})
}

func mountAll() error {
	for _, m := range []struct{ kind, dir string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"devpts", "/dev/pts"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return fmt.Errorf("mount %s: %w", m.kind, err)
		}
		if err := unix.Mount(m.kind, m.dir, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.dir, err)
		}
	}
	if err := os.Chmod("/tmp", 0o777|fs.ModeSticky); err != nil {
		return fmt.Errorf("open /tmp to all users: %w", err)
	}
	return nil
}

func loadModules(files []string) error {
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("load module: %w", err)
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load module %s: %w (the kernel's reason is on the console)", name, err)
		}
	}
	return nil
}

// loopbackUp gives the machine the one interface that tests of servers expect.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}
