// SPDX-License-Identifier: Apache-2.0
// base64, by the run time where it has it.

/** @internal base64 of bytes. */
export function toBase64(bytes: Uint8Array): string {
	const native = bytes as { toBase64?(): string };
	if (native.toBase64)
		return native.toBase64();
	let letters = '';
	for (let at = 0; at < bytes.length; at += 0x8000)
		letters += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
	return btoa(letters);
}

/** @internal The bytes of base64. */
export function fromBase64(text: string): Uint8Array {
	const native = Uint8Array as { fromBase64?(text: string): Uint8Array };
	return native.fromBase64 ? native.fromBase64(text) : Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
}
