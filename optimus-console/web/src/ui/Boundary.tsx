// Keeps a page that fails from taking the others with it.

import { Component, type ComponentChildren } from "preact";
import { words } from "../api/client";
import { Problem } from "./Await";

interface State {
  error?: unknown;
}

export class Boundary extends Component<{ children: ComponentChildren }, State> {
  override state: State = {};

  static override getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override componentDidCatch(error: unknown): void {
    console.warn(error);
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const told = new Error(`This page can't be shown: ${words(error)}`);
    return <Problem error={told} again={() => this.setState({ error: undefined })} />;
  }
}
