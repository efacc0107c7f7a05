package arpwire

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/net/bpf"
)

// MaxFilterRanges is the most ranges that FilterAddrs takes: a program of some
// 3,100 instructions, where the kernel allows 4,096 (BPF_MAXINSNS). An older
// kernel may have room for fewer (net.core.optmem_max) and refuse with ENOMEM.
const MaxFilterRanges = 256

// FilterAddrs returns a filter for an ETH_P_ALL packet socket that accepts ARP
// frames, as FilterARP does, if their sender or target is one of the addresses.
// These are searched for as a binary tree. If they form more than ranges ranges,
// at least 1 and at most MaxFilterRanges, those with the smallest gaps are joined,
// so that some other addresses pass, too: who reads must look again.
//
// Addresses that are not IPv4 are left out. Frames that are too short for an ARP
// packet are rejected.
func FilterAddrs(addrs []netip.Addr, ranges int) []bpf.Instruction {
	const (
		outer  = EthernetHeader - 2
		inner  = outer + VLANTag
		last   = inner + VLANTag
		sender = EthernetHeader + 14 // of an untagged frame
		target = EthernetHeader + 24
	)
	tree := searchTree(joinRanges(addrs, min(max(ranges, 1), MaxFilterRanges)))
	program := []bpf.Instruction{
		0:  bpf.LoadConstant{Dst: bpf.RegX, Val: 0},
		1:  bpf.LoadAbsolute{Off: outer, Size: 2},
		2:  bpf.JumpIf{Cond: bpf.JumpEqual, Val: TypeARP, SkipTrue: 11},
		3:  bpf.JumpIf{Cond: bpf.JumpEqual, Val: TypeVLAN, SkipTrue: 1},
		4:  bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: TypeQinQ, SkipTrue: 8},
		5:  bpf.LoadConstant{Dst: bpf.RegX, Val: VLANTag},
		6:  bpf.LoadAbsolute{Off: inner, Size: 2},
		7:  bpf.JumpIf{Cond: bpf.JumpEqual, Val: TypeARP, SkipTrue: 6},
		8:  bpf.JumpIf{Cond: bpf.JumpEqual, Val: TypeVLAN, SkipTrue: 1},
		9:  bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: TypeQinQ, SkipTrue: 3},
		10: bpf.LoadConstant{Dst: bpf.RegX, Val: 2 * VLANTag},
		11: bpf.LoadAbsolute{Off: last, Size: 2},
		12: bpf.JumpIf{Cond: bpf.JumpEqual, Val: TypeARP, SkipTrue: 1},
		13: bpf.RetConstant{Val: 0},
		14: bpf.LoadIndirect{Off: sender, Size: 4},
	}
	program = append(program, tree...)
	program = append(program, bpf.LoadIndirect{Off: target, Size: 4})
	program = append(program, tree...)
	return append(program, bpf.RetConstant{Val: 0})
}

// addrRange is a range of IPv4 addresses, both ends included.
type addrRange struct{ from, to uint32 }

// joinRanges returns the addresses as at most so many ranges, in order.
func joinRanges(addrs []netip.Addr, most int) []addrRange {
	values := make([]uint32, 0, len(addrs))
	for _, a := range addrs {
		if a = a.Unmap(); a.Is4() {
			b := a.As4()
			values = append(values, binary.BigEndian.Uint32(b[:]))
		}
	}
	slices.Sort(values)
	var list []addrRange
	for _, v := range values {
		if n := len(list); n > 0 && v-list[n-1].to <= 1 {
			list[n-1].to = v
			continue
		}
		list = append(list, addrRange{v, v})
	}
	if len(list) <= most {
		return list
	}
	// The widest gaps stay.
	gaps := make([]int, len(list)-1) // the i-th is before list[i+1]
	for i := range gaps {
		gaps[i] = i
	}
	slices.SortStableFunc(gaps, func(a, b int) int {
		return cmp.Compare(list[b+1].from-list[b].to, list[a+1].from-list[a].to)
	})
	kept := gaps[:most-1]
	slices.Sort(kept)
	joined := make([]addrRange, 0, most)
	begin := 0
	for _, gap := range kept {
		joined = append(joined, addrRange{list[begin].from, list[gap].to})
		begin = gap + 1
	}
	return append(joined, addrRange{list[begin].from, list[len(list)-1].to})
}

// searchTree returns instructions that accept the frame if the accumulator is in
// one of the ranges and otherwise go on after their end.
func searchTree(list []addrRange) []bpf.Instruction {
	code := branch(list)
	for i, in := range code {
		if _, miss := in.(missed); miss {
			code[i] = bpf.Jump{Skip: uint32(len(code) - i - 1)}
		}
	}
	return code
}

// missed stands for a jump to the end of a tree until it is known where that is.
type missed struct{ bpf.Instruction }

func branch(list []addrRange) []bpf.Instruction {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return []bpf.Instruction{
			bpf.JumpIf{Cond: bpf.JumpLessThan, Val: list[0].from, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: list[0].to, SkipTrue: 1},
			bpf.RetConstant{Val: SnapLength},
			missed{},
		}
	}
	middle := len(list) / 2
	left, right := branch(list[:middle]), branch(list[middle:])
	code := []bpf.Instruction{
		// A conditional jump reaches 255 instructions only, an unconditional one all.
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: list[middle].from, SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(left))},
	}
	return append(append(code, left...), right...)
}
