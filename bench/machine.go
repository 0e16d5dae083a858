package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is what the figures were measured on.
type machine struct {
	CPU        string
	Cores      int
	MemoryGiB  float64
	Kernel     string
	Go         string
	FileSystem string
	Mount      string // device and options
	WriteCache string // what the kernel thinks of the device's; "" if it does not say
	LoadBefore string
	LoadAfter  string
	Versions   map[string]string // of modules
}

func describe(dir string) (machine, error) {
	m := machine{Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: cpuModel(), LoadBefore: load(), Versions: map[string]string{}}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return m, err
	}
	m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return m, err
	}
	m.MemoryGiB = float64(info.Totalram) * float64(info.Unit) / (1 << 30)
	m.FileSystem, m.Mount, m.WriteCache = mountOf(dir)
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, d := range build.Deps {
			m.Versions[d.Path] = d.Version
		}
	}
	return m, nil
}

func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	f := strings.Fields(string(b))
	return strings.Join(f[:min(3, len(f))], " ")
}

// mountOf finds the mount that a directory is on.
func mountOf(dir string) (fsType, mount, cache string) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	abs, aerr := filepath.Abs(dir)
	if err != nil || aerr != nil {
		return "unknown", "unknown", ""
	}
	longest := -1
	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(g) < 3 || len(f[4]) <= longest || !within(abs, f[4]) {
			continue
		}
		longest, fsType, mount = len(f[4]), g[0], g[1]+" ("+f[5]+","+g[2]+")"
		cache = writeCache(g[1])
	}
	return fsType, mount, cache
}

func within(dir, mountPoint string) bool {
	return mountPoint == "/" || dir == mountPoint || strings.HasPrefix(dir, mountPoint+"/")
}

// writeCache of a whole disk; partitions and mappings do not say.
func writeCache(device string) string {
	b, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "queue/write_cache"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
